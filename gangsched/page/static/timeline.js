// The stages of one gang: a bar to scale, and a list with the time that each stage took; and what it did before.

import { byId, clock, duration, exact, full, make, now, setHidden } from "./text.js";
import { courseOf, waits } from "./store.js";
import { spansOf } from "./courses.js";

const LEAST_NAMED = 0.1; // minimum share of a span that has room for its duration
const LATER_MS = 2000; // times of pods are whole seconds, and a condition is written a moment later
const AGAIN = "waiting again",
  BEFORE = "an earlier run";
const RAN = ["starting", "running", "degraded"];
const BECOMES = {
  created: "incomplete",
  complete: "waiting",
  "first bound": "binding",
  scheduled: "starting",
  "last bound": "starting",
  running: "running",
  ended: "",
};

// The spans between stages: what the gang did from one stage to the next, and until now after the last one.
function spans(group) {
  const moments = stagesOf(group);
  return moments.map((moment, at) => {
    const last = at === moments.length - 1,
      lasts = last ? Math.max(now(), moment.at) : moments[at + 1].at;
    const does = waits(group) && last ? "waiting" : (BECOMES[moment.stage] ?? "waiting"),
      before = !last && moments[at + 1].stage === AGAIN && ["created", "complete"].includes(moment.stage);
    return { ...moment, does: before ? BEFORE : does, seconds: does ? (lasts - moment.at) / 1000 : 0 };
  });
}

// A gang whose run has ended waits again. The past knows of that run, but its stages are not known any more.
function stagesOf(group) {
  const moments = group.timeline.map((moment) => ({ stage: moment.stage, at: Date.parse(moment.time) }));
  const since = Date.parse(group.waitingSince);
  const ran = courseOf(full(group))?.steps.some(([does]) => RAN.includes(does));
  const again = ran && waits(group) && moments.length && since - moments.at(-1).at > LATER_MS;
  return again ? [...moments, { stage: AGAIN, at: since }] : moments;
}

export function showTimeline(group) {
  const found = spans(group),
    total = found.reduce((sum, span) => sum + span.seconds, 0) || 1;
  byId("timeline").replaceChildren(
    ...found.map((span) => {
      const part = make(
        "span",
        span.seconds / total < LEAST_NAMED ? "" : duration(span.seconds),
        `did-${span.does.replaceAll(" ", "-")}`,
      );
      part.style.flexGrow = String(span.seconds / total);
      part.title = `${span.does}: ${duration(span.seconds)}`;
      return part;
    }),
  );
  byId("moments").replaceChildren(
    ...found.map((span) => {
      const item = make("li"),
        time = make("span", clock(span.at), "soft");
      time.title = exact(span.at);
      item.append(make("span", "", `key did-${span.does.replaceAll(" ", "-")}`), make("b", span.stage), time);
      if (span.seconds > 0) item.append(make("span", `then ${span.does} for ${duration(span.seconds)}`));
      return item;
    }),
  );
}

// What it did since it was first seen, if that is more than one thing: the stages are those of its present run alone.
export function showCourse(name) {
  const course = courseOf(name),
    found = course ? spansOf(course, now() / 1000).filter((span) => span.ends - span.at >= 1) : [];
  setHidden(byId("course-box"), found.length < 2);
  byId("course").replaceChildren(
    ...found.map((span) => {
      const item = make("li"),
        time = make("span", clock(span.at * 1000), "soft");
      time.title = exact(span.at * 1000);
      item.append(make("span", "", `key did-${span.does.replaceAll(" ", "-")}`), make("b", span.does), time);
      item.append(make("span", `for ${duration(Math.round(span.ends - span.at))}`));
      return item;
    }),
  );
}
