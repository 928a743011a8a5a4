// The line: groups that wait, in scheduling order, filtered by namespace, reason and name.
// Beside it those that never fit.

import * as address from "./address.js";
import { all, getHead, hopeless, line, versionOf } from "./store.js";
import { asked, byId, count, full, list, make, say, showSince, showStart } from "./text.js";
import { belongs } from "./mark.js";
import { MOST, showRows, showSome } from "./rows.js";
import { opener, reasonOf, showChip } from "./gangs.js";

const ANY = "any";
let shown = "";

export function showLine() {
  const now = [versionOf("group"), getHead().trouble, location.hash].join();
  if (now === shown) return;
  shown = now;
  const waiting = line(),
    never = hopeless(),
    places = new Map();
  waiting.filter((group) => group.turn).forEach((group, at) => places.set(group, at + 1));
  showChoices(
    byId("namespace"),
    "namespace",
    [...waiting, ...never].map((group) => group.namespace),
  );
  showChoices(byId("reason"), "reason", waiting.map(reasonOf));
  const wanted = waiting.filter(matching());
  showRows(byId("line"), wanted.slice(0, MOST), {
    key: full,
    make: madeEntry,
    fill: (item, group) => fillEntry(item, group, places.get(group)),
  });
  const more = wanted.length - MOST;
  say(byId("more-waiting"), more > 0 ? `and ${count(more, "more group")}: filter by namespace, reason or name` : "");
  say(byId("none-waiting"), wanted.length ? "" : emptiness(waiting));
  showNever(never.filter(({ namespace }) => [ANY, namespace].includes(byId("namespace").value)));
}

function showNever(never) {
  showSome("never", never, {
    key: full,
    make: madeEntry,
    fill: (item, group) => fillEntry(item, group),
  });
}

function emptiness(waiting) {
  if (waiting.length) return "No waiting group matches these filters.";
  if (all("group").length) return "No group waits.";
  // A server that does not know all groups says so at the top.
  return getHead().trouble ? "" : "No group exists yet: create a PodGroup, or pods with schedulerName: gangsched.";
}

function showChoices(select, name, values) {
  const wanted = address.get(name),
    known = new Set(values);
  if (wanted) known.add(wanted);
  showRows(select, [ANY, ...[...known].sort()], {
    key: (value) => value,
    make: (value) => make("option", value),
    fill: (option, value) => {
      option.value = value;
    },
  });
  select.value = wanted || ANY;
}

// Whether a group passes the filters as they are now.
function matching() {
  const [namespace, reason] = ["namespace", "reason"].map((id) => byId(id).value);
  const text = byId("wanted").value.trim().toLowerCase();
  return (group) =>
    (namespace === ANY || group.namespace === namespace) &&
    (reason === ANY || reasonOf(group) === reason) &&
    (!text || full(group).toLowerCase().includes(text));
}

function madeEntry(group) {
  const item = make("li");
  item.append(
    make("span", "", "place"),
    opener(full(group)),
    make("span", "", "chip"),
    make("span", "", "ask"),
    make("time"),
    make("p"),
    make("p", "", "starts"),
  );
  return item;
}

function fillEntry(item, group, place) {
  const [number, , chip, ask, since, message, starts] = item.children;
  belongs(item, full(group));
  say(number, place ? String(place) : "–");
  showChip(chip, group);
  say(ask, asked(group));
  showSince(since, group.waitingSince);
  say(message, [group.message || unseen(group), leaving(group)].filter(Boolean).join(" "));
  showStart(starts, group.expectedStart);
}

function unseen(group) {
  if (!group.phase) return "No operator has seen it yet: check that one runs.";
  return group.members < group.minimum ? `${group.members} of ${group.minimum} members exist.` : "";
}

// Who leaves for the group, if a plan is open for it.
function leaving(group) {
  if (!group.plan) return "";
  const who = group.plan.leaving.map((each) => `${each.pods} of ${each.group || "no group"}`);
  return `Pods leave for it: ${list(who)}.`;
}

export function startLine() {
  ["namespace", "reason"].forEach((id) =>
    byId(id).addEventListener("change", (event) => {
      address.set(id, event.target.value === ANY ? "" : event.target.value);
    }),
  );
  byId("wanted").addEventListener("input", () => {
    shown = "";
    showLine();
  });
}
