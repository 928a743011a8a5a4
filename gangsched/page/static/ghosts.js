// What a tried manifest would change: how many pods would come to each node, and how many would leave it.

const followers = [];
let coming = new Map(),
  leaving = new Map();

export function ghostsOn(node) {
  return { comes: coming.get(node) || 0, leaves: leaving.get(node) || 0 };
}

export function showGhosts(comes = new Map(), leaves = new Map()) {
  [coming, leaving] = [comes, leaves];
  followers.forEach((changed) => changed());
}

export function onGhosts(changed) {
  followers.push(changed);
}
