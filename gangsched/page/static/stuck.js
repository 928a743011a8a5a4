// Gangs with members that are bound but do not start, and why.

import { all, versionOf } from "./store.js";
import { belongs } from "./mark.js";
import { byId, full, list, make, say } from "./text.js";
import { opener } from "./gangs.js";
import { showSome } from "./rows.js";

const USUAL = ["ContainerCreating", "PodInitializing"]; // what every pod waits for at first
let shown = "";

export function showStuck() {
  if (shown === versionOf("group")) return;
  shown = versionOf("group");
  const found = all("group")
    .map((group) => ({ group, members: group.roster.filter(doesNotStart) }))
    .filter(({ members }) => members.length);
  byId("starting").classList.toggle("bad", found.length > 0);
  showSome("stuck", found, { key: ({ group }) => full(group), make: madeEntry, fill: fillEntry });
}

function doesNotStart([, node, phase, why]) {
  return node && phase === "Starting" && why && !USUAL.includes(why);
}

function madeEntry({ group }) {
  const item = make("li");
  item.append(make("span", "–", "place"), opener(full(group)), make("span", "", "chip bad"), make("p"));
  return item;
}

function fillEntry(item, { group, members }) {
  const [, , chip, message] = item.children;
  belongs(item, full(group));
  say(chip, members[0][3]);
  const who = members.map(([name, node, , why]) => `${name} on ${node} (${why})`);
  say(message, `${group.running} of ${group.bound} bound members run; not ${list(who, 3)}.`);
}
