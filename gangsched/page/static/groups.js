// All groups as a table, also those that do not wait.

import { all, versionOf } from "./store.js";
import { asked, byId, count, existing, full, make, say } from "./text.js";
import { belongs } from "./mark.js";
import { MOST, showRows } from "./rows.js";
import { opener } from "./gangs.js";

let shown = "";

export function showGroups() {
  if (!byId("table-of-groups").open || shown === versionOf("group")) return;
  shown = versionOf("group");
  const text = byId("sought").value.trim().toLowerCase();
  const wanted = all("group").filter((group) => full(group).toLowerCase().includes(text));
  showRows(byId("groups").tBodies[0], wanted.slice(0, MOST), { key: full, make: madeRow, fill: fillRow });
  say(
    byId("more-groups"),
    wanted.length > MOST ? `and ${count(wanted.length - MOST, "more group")}: filter by name` : "",
  );
}

function madeRow(group) {
  const row = make("tr"),
    name = make("td");
  name.append(opener(full(group)));
  row.append(
    name,
    make("td"),
    make("td"),
    make("td", "", "number"),
    make("td", "", "number"),
    make("td", "", "number"),
  );
  return row;
}

function fillRow(row, group) {
  belongs(row, full(group));
  [
    group.phase || "–",
    asked(group),
    existing(group),
    String(group.bound),
    String(group.running),
  ].forEach((text, at) => say(row.cells[at + 1], text));
}

export function startGroups() {
  const again = () => {
    shown = "";
    showGroups();
  };
  byId("sought").addEventListener("input", again);
  byId("table-of-groups").addEventListener("toggle", again);
}
