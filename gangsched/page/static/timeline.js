// The stages of one gang: a bar to scale, and a list with the time that each stage took.

import { clock, draw, duration, exact, make, now } from "./text.js";
import { waits } from "./store.js";

const WIDE = 600, HIGH = 26;
const LEAST_NAMED = 56;  // minimum width of a segment that has room for its duration
const BECOMES = {
  "created": "incomplete", "complete": "waiting", "first bound": "binding", "scheduled": "starting",
  "last bound": "starting", "running": "running",
};

// The spans between stages: what the gang did from one stage to the next, and until now after the last one.
function spans(group) {
  const moments = group.timeline.map((moment) => ({ stage: moment.stage, at: Date.parse(moment.time) }));
  return moments.map((moment, at) => {
    const last = at === moments.length - 1, lasts = last ? Math.max(now(), moment.at) : moments[at + 1].at;
    const does = waits(group) && last ? "waiting" : BECOMES[moment.stage] || "waiting";
    return { ...moment, does, seconds: (lasts - moment.at) / 1000 };
  });
}

export function showTimeline(picture, stages, group) {
  const found = spans(group), total = found.reduce((sum, span) => sum + span.seconds, 0) || 1;
  let left = 0;
  const parts = found.flatMap((span) => {
    const wide = (span.seconds / total) * WIDE, from = left;
    left += wide;
    const box = draw("rect", { x: from, y: 0, width: Math.max(wide, 1), height: HIGH, class: `did-${span.does}` });
    box.append(draw("title", {}, `${span.does}: ${duration(span.seconds)}`));
    const text = draw("text", { x: from + 5, y: HIGH - 9, class: `on-${span.does}` }, duration(span.seconds));
    return wide < LEAST_NAMED ? [box] : [box, text];
  });
  picture.replaceChildren(...parts);
  stages.replaceChildren(...found.map((span) => {
    const item = make("li"), time = make("span", clock(span.at), "soft");
    time.title = exact(span.at);
    item.append(make("span", "", `key did-${span.does}`), make("b", span.stage), time);
    if (span.seconds > 0) item.append(make("span", `then ${span.does} for ${duration(span.seconds)}`));
    return item;
  }));
}
