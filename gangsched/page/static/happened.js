// What happened: the use of each resource and the number of waiting groups as lines, and what each gang did as bars.

import * as address from "./address.js";
import { all, versionOf } from "./store.js";
import { belongs } from "./mark.js";
import { byId, clock, count, draw, duration, exact, full, make, now, resource, say, setHidden } from "./text.js";
import { opener } from "./gangs.js";
import { spansOf } from "./courses.js";
import { pathOf, samplesSince } from "./samples.js";
import { showRows } from "./rows.js";

const HOURS = { 1: "hour", 24: "day" };
const MOST_BARS = 30;
const WIDE = 400,
  HIGH = 90,
  BAR = 12;
const DASHES = ["", "6 3", "2 2", "8 3 2 3"];
const HEIGHTS = { waiting: 3, binding: 6, starting: 6, degraded: 6 }; // of those that are lower than the bar
const UNDONE = { preempted: 8, "rolled back": 8 }; // drawn over the others, and at least so wide
const EVERY_MS = 10000; // how often the bars grow while nothing happens
let shown = "";

export function showHappened() {
  const hours = HOURS[address.get("hours")] ? address.get("hours") : "1";
  const current = [versionOf("minute", "past", "head"), hours, Math.floor(now() / EVERY_MS)].join();
  if (current === shown) return;
  shown = current;
  byId("hours").value = hours;
  const until = now() / 1000,
    from = until - Number(hours) * 3600;
  showChart(from, until);
  showBars(from, until);
  ["chart", "bars"].forEach((id) => {
    say(byId(`${id}-from`), clock(from * 1000));
    say(byId(`${id}-until`), clock(until * 1000));
  });
}

// The chart

function showChart(from, until) {
  const samples = samplesSince(from),
    chart = byId("chart"),
    names = samples.length ? Object.keys(samples.at(-1).use) : [];
  setHidden(byId("chart-box"), samples.length < 2);
  say(byId("no-samples"), samples.length < 2 ? "The past is noted from now on: the chart begins in two minutes." : "");
  const x = (at) => ((at - from) / (until - from)) * WIDE;
  const most = Math.max(1, ...samples.map((sample) => sample.waiting));
  const waiting = samples.map((sample) => [sample.at, x(sample.at), HIGH - (sample.waiting / most) * HIGH]);
  const lines = names.map((name, at) =>
    draw("path", {
      d: pathOf(samples.map((sample) => [sample.at, x(sample.at), HIGH - (sample.use[name] || 0) * HIGH])),
      class: `use use-${at % 4}`,
      "stroke-dasharray": DASHES[at % 4],
    }),
  );
  chart.replaceChildren(
    ...[0, 0.5, 1].map((part) => draw("line", { x1: 0, x2: WIDE, y1: HIGH * part, y2: HIGH * part, class: "grid" })),
    ...lines,
    draw("path", { d: pathOf(waiting), class: "waiting-line" }),
  );
  byId("chart-key").replaceChildren(
    ...names.map((name, at) =>
      keyed(
        `use use-${at % 4}`,
        DASHES[at % 4],
        `${resource(name)} ${Math.round((samples.at(-1).use[name] || 0) * 100)} %`,
      ),
    ),
    ...(samples.length ? [keyed("waiting-line", "", `waiting ${samples.at(-1).waiting}`)] : []),
  );
  say(byId("most-waiting"), `${most} waiting`);
}

function keyed(name, dashes, text) {
  const item = make("li"),
    sample = draw("svg", { viewBox: "0 0 24 8", class: "sample", "aria-hidden": "true" });
  sample.append(draw("line", { x1: 0, x2: 24, y1: 4, y2: 4, class: name, "stroke-dasharray": dashes }));
  item.append(sample, make("span", text));
  return item;
}

// The bars

// Gangs that did something in this time, those that changed last first.
function recent(from, until) {
  const found = all("past")
    .map((course) => ({ course, spans: spansOf(course, until) }))
    .filter((each) => each.spans.length && each.spans.at(-1).ends >= from);
  return found.sort((one, other) => changedAt(other.course) - changedAt(one.course));
}

function changedAt(course) {
  return course.ended || course.steps.at(-1)[1];
}

function showBars(from, until) {
  const found = recent(from, until);
  showRows(byId("bars"), found.slice(0, MOST_BARS), {
    key: ({ course }) => `${full(course)} ${course.ended || ""}`,
    make: madeBar,
    fill: (item, each) => fillBar(item, each, from, until),
  });
  const more = found.length - MOST_BARS;
  say(byId("more-bars"), more > 0 ? `and ${count(more, "more gang")} that changed before` : "");
  say(byId("no-bars"), found.length ? "" : `No gang did anything in the last ${HOURS[byId("hours").value]}.`);
}

function madeBar({ course }) {
  const item = make("li");
  const picture = draw("svg", { viewBox: `0 0 ${WIDE} ${BAR}`, preserveAspectRatio: "none", "aria-hidden": "true" });
  item.append(opener(full(course)), picture, make("span", "", "unseen"));
  return item;
}

function fillBar(item, { course, spans: found }, from, until) {
  const [, picture, words] = item.children,
    x = (at) => ((Math.max(from, at) - from) / (until - from)) * WIDE;
  belongs(item, full(course));
  const visible = found.filter((span) => span.ends >= from);
  const drawn = [...visible].sort((one, other) => (one.does in UNDONE) - (other.does in UNDONE));
  picture.replaceChildren(
    ...drawn.map((span) => {
      const high = HEIGHTS[span.does] || BAR,
        wide = Math.max(UNDONE[span.does] || 1.5, x(span.ends) - x(span.at)),
        left = Math.min(x(span.at), WIDE - wide);
      const box = draw("rect", {
        x: left,
        y: (BAR - high) / 2,
        width: wide,
        height: high,
        class: `did-${span.does.replace(" ", "-")}`,
      });
      box.append(draw("title", {}, `${told(span)}, from ${exact(span.at * 1000)}`));
      return box;
    }),
  );
  const long = visible.filter((span) => span.ends - span.at >= 1);
  say(words, long.map(told).join(", ") + (course.ended ? ", then deleted" : ""));
}

function told(span) {
  return `${span.does} for ${duration(Math.round(span.ends - span.at))}`;
}

export function startHappened() {
  byId("hours").addEventListener("change", (event) =>
    address.set("hours", event.target.value === "1" ? "" : event.target.value),
  );
}
