// Where the members of a tried manifest would go: how many on each node.

const followers = [];
let ghosts = new Map();

export function ghostsOn(node) { return ghosts.get(node) || 0; }

export function showGhosts(numbers) {
  ghosts = numbers;
  followers.forEach((changed) => changed());
}

export function onGhosts(changed) { followers.push(changed); }
