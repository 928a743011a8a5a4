// One gang, in a drawer beside the page, with an address of its own.

import * as address from "./address.js";
import { group as groupNamed, versionOf, waits } from "./store.js";
import { asked, byId, count, exact, full, make, say, setHidden } from "./text.js";
import { keepMarked } from "./mark.js";
import { MOST, showRows } from "./rows.js";
import { opener, showChip } from "./gangs.js";
import { askWhatHelps, askNoMore } from "./helps.js";
import { showCourse, showTimeline } from "./timeline.js";

const PLAIN = /^[\w./=-]+$/;
let openedFrom = null,
  shownGang = "",
  drawn = "";

function close() {
  address.set("group", "", { step: true });
}

// Follows the address: opens, changes or closes the drawer, and shows the present state of its gang.
export function showDrawer() {
  const name = address.get("group");
  if (name !== shownGang) change(name);
  if (!name) return;
  const group = groupNamed(name),
    now = `${name} ${versionOf("group")}`;
  if (now === drawn) return;
  drawn = now;
  fill(name, group);
}

function change(name) {
  shownGang = name;
  drawn = "";
  askNoMore();
  keepMarked(name);
  setHidden(byId("gang"), !name);
  if (name) {
    if (!byId("gang").contains(document.activeElement)) openedFrom = document.activeElement;
    byId("gang-head").focus({ preventScroll: true });
    return;
  }
  if (openedFrom && openedFrom.isConnected) openedFrom.focus({ preventScroll: true });
  openedFrom = null;
}

function fill(name, group) {
  say(byId("gang-head"), name);
  setHidden(byId("gang-body"), !group);
  setHidden(byId("gang-chip"), !group);
  say(byId("gang-state"), group ? stateOf(group) : "This group does not exist, or no longer.");
  if (!group) {
    askNoMore();
    return;
  }
  showChip(byId("gang-chip"), group);
  say(byId("gang-message"), group.message || "");
  if (waits(group)) askWhatHelps(group);
  else askNoMore();
  showMembers(group);
  showTimeline(group);
  showCourse(name);
  showPlan(group);
  showCommands(group);
}

function stateOf(group) {
  const parts = [
    group.phase || "not seen by an operator",
    asked(group),
    group.minimum ? `${group.members} of ${group.minimum} members exist` : count(group.members, "member"),
    `${group.bound} bound`,
    `${group.running} running`,
    `priority ${group.priority}`,
    group.resource,
  ];
  return parts.join(" · ");
}

// Members with trouble come first, because a list has a limit.
function showMembers(group) {
  const members = [...group.roster].sort((one, other) => rank(one) - rank(other));
  const numbers = new Map();
  members.forEach(([, , phase]) => numbers.set(phase, (numbers.get(phase) || 0) + 1));
  say(
    byId("members-sum"),
    [...numbers].map(([phase, number]) => `${number} ${phase}`).join(" · ") || "No member exists yet.",
  );
  showRows(byId("members").tBodies[0], members.slice(0, MOST), {
    key: ([name]) => name,
    make: madeMember,
    fill: fillMember,
  });
  say(byId("more-members"), members.length > MOST ? `and ${count(members.length - MOST, "more member")}` : "");
}

function rank([, node, phase, why]) {
  return why ? 0 : phase === "Running" ? 3 : node ? 1 : 2;
}

function madeMember() {
  const row = make("tr");
  row.append(make("td"), make("td"), make("td"), make("td"));
  return row;
}

function fillMember(row, [name, node, phase, why]) {
  [name, node || "–", phase, why || "–"].forEach((text, at) => say(row.cells[at], text));
}

function showPlan(group) {
  const { plan, reserved } = group;
  setHidden(byId("plan"), !plan && !reserved);
  say(byId("plan-times"), [reserved && reservation(reserved), plan && eviction(plan)].filter(Boolean).join(" "));
  showRows(byId("victims"), plan ? plan.leaving : [], {
    key: (each) => each.group || "",
    make: madeVictim,
    fill: (item, each) => say(item.lastChild, ` ${count(each.pods, "pod")}`),
  });
}

function reservation({ start, nodes, pods }) {
  const where = `Places on ${count(nodes, "node")} are reserved`;
  return start
    ? `${where} from ${exact(Date.parse(start))} on; until then ${count(pods, "pod")} there will have ended.`
    : `${where}; it is not known when ${count(pods, "pod")} there will have ended.`;
}

function eviction({ since, expires }) {
  const told = since
    ? `They were told to leave at ${exact(Date.parse(since))}`
    : "They are told to leave once the plan is written";
  return `${told}. The plan is given up at ${exact(Date.parse(expires))}.`;
}

function madeVictim(each) {
  const item = make("li");
  item.append(each.group ? opener(each.group) : make("b", "pods without a group"), make("span"));
  return item;
}

// Commands

function quoted(word) {
  return PLAIN.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function showCommands(group) {
  const namespace = quoted(group.namespace),
    pods = group.roster.map(([pod]) => pod);
  const troubled = group.roster.find(([, node, , why]) => node && why);
  const commands = [`gangsched explain ${quoted(full(group))}`, `gangsched events ${quoted(full(group))}`];
  if (group.resource !== "gang.gangsched.io")
    commands.push(`kubectl -n ${namespace} describe ${quoted(group.resource)} ${quoted(group.name)}`);
  if (troubled) commands.push(`kubectl -n ${namespace} describe pod ${quoted(troubled[0])}`);
  else if (group.running) commands.push(`kubectl -n ${namespace} logs ${quoted(pods[0])}`);
  showRows(byId("commands"), commands, { key: (command) => command, make: madeCommand, fill: () => {} });
}

function madeCommand(command) {
  const item = make("li"),
    code = make("code", command),
    button = make("button", "Copy", "copy");
  button.type = "button";
  button.setAttribute("aria-label", `Copy: ${command}`);
  button.addEventListener("click", () => copy(code, button));
  item.append(code, button);
  return item;
}

async function copy(code, button) {
  try {
    await navigator.clipboard.writeText(code.textContent);
    say(button, "Copied");
  } catch {
    // The browser does not permit it: what is selected can be copied by hand.
    getSelection().selectAllChildren(code);
  }
}

export function startDrawer() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button.name");
    if (button) address.set("group", button.dataset.gang, { step: true });
  });
  byId("gang-close").addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && shownGang) close();
  });
}
