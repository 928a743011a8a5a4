// The samples of the whole cluster over time, up to the present, and lines through them.

import { all, getHead } from "./store.js";
import { now } from "./text.js";

const GAP_S = 150; // samples further apart than this are not connected

// The samples since this time, in seconds. The last one is the present, if anything was sampled.
export function samplesSince(from) {
  const samples = all("minute").filter((sample) => sample.at >= from);
  const { totals } = getHead();
  return totals && samples.length ? [...samples, present(totals)] : samples;
}

function present({ waiting, running, resources }) {
  const use = Object.entries(resources).map(([name, amounts]) => [name, amounts.shares.requested]);
  return { at: now() / 1000, waiting, running, use: Object.fromEntries(use) };
}

// A line through points, each with its time and its place, as an SVG path; it is interrupted where samples are missing.
export function pathOf(points) {
  return points
    .map(([at, x, y], number) => {
      const apart = !number || at - points[number - 1][0] > GAP_S;
      return `${apart ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`;
    })
    .join("");
}
