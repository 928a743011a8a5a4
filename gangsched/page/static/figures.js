// The strip of figures at the top: groups, the oldest wait, and how much of each main resource is in use.

import { getHead, hopeless, oldest } from "./store.js";
import { belongs } from "./mark.js";
import { byId, draw, full, make, now, resource, say, setHidden, showSince } from "./text.js";
import { pathOf, samplesSince } from "./samples.js";
import { showRows } from "./rows.js";

const HOUR_S = 3600;
const PARTS = ["requested", "held", "reserved", "closed"]; // of the bar, in this order; what is free is left

export function showFigures() {
  const { totals } = getHead();
  setHidden(byId("figures"), !totals);
  if (!totals) return;
  say(byId("running"), String(totals.running));
  say(byId("waiting"), String(totals.waiting));
  say(byId("starting"), String(totals.starting));
  const never = hopeless().length;
  say(byId("hopeless-groups"), String(never));
  setHidden(byId("hopeless"), !never);
  const samples = samplesSince(now() / 1000 - HOUR_S);
  spark(
    byId("waiting-spark"),
    samples,
    (sample) => sample.waiting,
    Math.max(1, ...samples.map((sample) => sample.waiting)),
    "waiting-line",
  );
  showOldest();
  showRows(byId("resources"), Object.entries(totals.resources), {
    key: ([name]) => name,
    make: madeMeter,
    fill: fillMeter,
  });
  [...byId("resources").children].forEach((item) => {
    spark(item.children[1], samples, (sample) => sample.use[item.dataset.key] || 0, 1, "use-0");
  });
}

// The last hour as a small line.
function spark(picture, samples, valueOf, most, name) {
  const from = now() / 1000 - HOUR_S;
  const points = samples.map((sample) => [
    sample.at,
    ((sample.at - from) / HOUR_S) * 100,
    15 - (valueOf(sample) / most) * 14,
  ]);
  const path = pathOf(points),
    known = picture.firstChild;
  if (known && known.getAttribute("d") === path) return;
  picture.replaceChildren(draw("path", { d: path, class: name }));
}

function showOldest() {
  const found = oldest();
  showSince(byId("oldest"), found && found.waitingSince);
  belongs(byId("oldest").closest("li"), found ? full(found) : "");
}

function madeMeter() {
  const item = make("li", "", "meter"),
    bar = make("span", "", "bar"),
    text = make("span", "", "soft");
  bar.append(...PARTS.map((kind) => make("span", "", kind)));
  const picture = draw("svg", {
    viewBox: "0 0 100 16",
    preserveAspectRatio: "none",
    class: "spark",
    "aria-hidden": "true",
  });
  item.append(make("b"), picture, bar, text);
  return item;
}

function fillMeter(item, [name, amounts]) {
  const [head, , bar, text] = item.children;
  say(head, `${Math.round(amounts.shares.requested * 100)} % ${resource(name)}`);
  PARTS.forEach((kind, at) => {
    bar.children[at].style.width = `${Math.min(100, amounts.shares[kind] * 100)}%`;
  });
  const kept = [
    ["held", "held"],
    ["reserved", "reserved"],
    ["closed", "on closed nodes"],
  ]
    .filter(([kind]) => amounts.shares[kind] > 0)
    .map(([kind, words]) => `${amounts[kind]} ${words}`);
  say(text, [`${amounts.requested} used`, `${amounts.free} free`, ...kept].join(" · "));
  item.title = `${name}: ${text.textContent}`;
}
