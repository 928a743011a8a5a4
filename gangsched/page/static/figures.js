// The strip of figures at the top: groups, the oldest wait, and how much of each main resource is in use.

import { getHead, oldest } from "./store.js";
import { belongs } from "./mark.js";
import { byId, full, make, resource, say, setHidden, showSince } from "./text.js";
import { showRows } from "./rows.js";

const PARTS = [["requested", "used"], ["held", "held"], ["reserved", "reserved"], ["free", "free"]];

export function showFigures() {
  const { totals } = getHead();
  setHidden(byId("figures"), !totals);
  if (!totals) return;
  say(byId("running"), String(totals.running));
  say(byId("waiting"), String(totals.waiting));
  say(byId("starting"), String(totals.starting));
  showOldest();
  showRows(byId("resources"), Object.entries(totals.resources), { key: ([name]) => name, make: madeMeter, fill: fillMeter });
}

function showOldest() {
  const found = oldest();
  showSince(byId("oldest"), found && found.waitingSince);
  belongs(byId("oldest").closest("li"), found ? full(found) : "");
}

function madeMeter() {
  const item = make("li", "", "meter"), bar = make("span", "", "bar"), text = make("span", "", "soft");
  bar.append(...PARTS.map(([kind]) => make("span", "", kind)));
  item.append(make("b"), bar, text);
  return item;
}

function fillMeter(item, [name, amounts]) {
  const [head, bar, text] = item.children;
  item.title = name;
  say(head, `${Math.round(amounts.shares.requested * 100)} % ${resource(name)}`);
  PARTS.forEach(([kind], at) => { bar.children[at].style.width = `${Math.min(100, amounts.shares[kind] * 100)}%`; });
  const told = PARTS.filter(([kind]) => kind === "requested" || kind === "free" || amounts.shares[kind] > 0);
  say(text, told.map(([kind, word]) => `${amounts[kind]} ${word}`).join(" · "));
}
