// The stages of one gang: a bar to scale, and a list with the time that each stage took.

import { clock, duration, exact, make, now } from "./text.js";
import { waits } from "./store.js";

const LEAST_NAMED = 0.1; // minimum share of a span that has room for its duration
const BECOMES = {
  created: "incomplete",
  complete: "waiting",
  "first bound": "binding",
  scheduled: "starting",
  "last bound": "starting",
  running: "running",
};

// The spans between stages: what the gang did from one stage to the next, and until now after the last one.
function spans(group) {
  const moments = group.timeline.map((moment) => ({ stage: moment.stage, at: Date.parse(moment.time) }));
  return moments.map((moment, at) => {
    const last = at === moments.length - 1,
      lasts = last ? Math.max(now(), moment.at) : moments[at + 1].at;
    const does = waits(group) && last ? "waiting" : BECOMES[moment.stage] || "waiting";
    return { ...moment, does, seconds: (lasts - moment.at) / 1000 };
  });
}

export function showTimeline(bar, stages, group) {
  const found = spans(group),
    total = found.reduce((sum, span) => sum + span.seconds, 0) || 1;
  bar.replaceChildren(
    ...found.map((span) => {
      const part = make("span", span.seconds / total < LEAST_NAMED ? "" : duration(span.seconds), `did-${span.does}`);
      part.style.flexGrow = String(span.seconds / total);
      part.title = `${span.does}: ${duration(span.seconds)}`;
      return part;
    }),
  );
  stages.replaceChildren(
    ...found.map((span) => {
      const item = make("li"),
        time = make("span", clock(span.at), "soft");
      time.title = exact(span.at);
      item.append(make("span", "", `key did-${span.does}`), make("b", span.stage), time);
      if (span.seconds > 0) item.append(make("span", `then ${span.does} for ${duration(span.seconds)}`));
      return item;
    }),
  );
}
