// Elements and words. Names are text, never markup: all elements are made by createElement and textContent.

const SVG = "http://www.w3.org/2000/svg";
const MINUTE = 60,
  HOUR = 3600,
  DAY = 86400;
export const NAMES = 20; // maximum number of names in a sentence
let skew = 0; // how far the cluster's clock is ahead of this machine's, in milliseconds

export const byId = (id) => document.getElementById(id);

export function make(tag, text = "", name = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

export function draw(tag, values, text = "") {
  const made = document.createElementNS(SVG, tag);
  Object.entries(values).forEach(([name, value]) => made.setAttribute(name, value));
  if (text) made.textContent = text;
  return made;
}

// A screen reader repeats a text that is set again, even if it is the same.
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

export function full(thing) {
  return `${thing.namespace}/${thing.name}`;
}

export function list(names, most = NAMES) {
  const more = names.length - most;
  return names.slice(0, most).join(", ") + (more > 0 ? ` and ${more} more` : "");
}

// Formatters of one's own: `toLocaleString` makes a new one each time, which is slow.
const NUMBER = new Intl.NumberFormat("en");

export function count(number, noun) {
  return `${NUMBER.format(number)} ${noun}${number === 1 ? "" : "s"}`;
}

// Time

export function setClock(seconds) {
  skew = seconds * 1000 - Date.now();
}

export function now() {
  return Date.now() + skew;
}

export function duration(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  if (seconds < 10 && seconds > 0 && whole !== seconds) return `${seconds.toFixed(1)} s`;
  if (whole < MINUTE) return `${whole} s`;
  if (whole < HOUR)
    return `${Math.floor(whole / MINUTE)} min${whole < 10 * MINUTE && whole % MINUTE ? ` ${whole % MINUTE} s` : ""}`;
  if (whole < DAY) return pair(whole, HOUR, "h", MINUTE, "min");
  return pair(whole, DAY, "d", HOUR, "h");
}

function pair(seconds, large, largeUnit, small, smallUnit) {
  const rest = Math.floor((seconds % large) / small);
  return `${Math.floor(seconds / large)} ${largeUnit}${rest ? ` ${rest} ${smallUnit}` : ""}`;
}

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const CLOCK = new Intl.DateTimeFormat(undefined, { timeStyle: "medium" });

export function clock(milliseconds) {
  return Number.isNaN(milliseconds) ? "" : CLOCK.format(milliseconds);
}

export function exact(milliseconds) {
  return Number.isNaN(milliseconds) ? "" : EXACT.format(milliseconds);
}

// An element that shows how long ago this was. `refreshTimes` keeps it right; the exact time appears on hover.
export function showSince(element, time) {
  const value = time || "";
  if (element.dateTime !== value) {
    element.dateTime = value;
    element.title = value ? exact(Date.parse(value)) : "";
  }
  refreshTime(element);
}

function refreshTime(element) {
  const ago = Math.floor((now() - Date.parse(element.dateTime)) / 1000);
  say(element, element.dateTime ? duration(ago) : "–");
}

export function refreshTimes() {
  document.querySelectorAll("time").forEach(refreshTime);
  document.querySelectorAll("[data-earliest]").forEach(refreshStart);
}

// When a group will probably start, as an interval from now, which `refreshTimes` keeps right; the exact times appear
// on hover.
export function showStart(element, starts) {
  const { earliest, latest, why } = starts || {};
  Object.assign(element.dataset, { earliest: earliest || "", latest: latest || "", why: why || "" });
  const times = [earliest, latest].filter(Boolean).map((time) => Date.parse(time));
  element.title = times.map(exact).join(" to ");
  refreshStart(element);
}

function refreshStart(element) {
  const { earliest: first, latest: last, why } = element.dataset;
  const left = (time) => Math.round((Date.parse(time) - now()) / 1000);
  const earliest = first && left(first) > 0 ? duration(left(first)) : "",
    latest = last && duration(left(last));
  if (last ? left(last) <= 0 : first && !earliest) say(element, "Expected to start at any moment.");
  else if (earliest && latest) say(element, `Expected to start in ${earliest} to ${latest}.`);
  else if (latest) say(element, `Expected to start in ${latest} at the latest.`);
  else if (earliest) say(element, `Expected to start not before ${earliest} from now.`);
  else say(element, why ? `When it starts is unknown: ${why}.` : "");
}

// Amounts

const SHORT = { cpu: "CPU", memory: "memory", "nvidia.com/gpu": "GPU", "amd.com/gpu": "GPU" };

export function resource(name) {
  return SHORT[name] || name.slice(name.lastIndexOf("/") + 1);
}

// How many of the needed members exist, as in 2/3; 2/- if it is not known how many are needed.
export const existing = (group) => `${group.members}/${group.minimum || "-"}`;

// What members ask for: "8 × (8 GPU)". CPU and memory are named only if they ask for no device.
export function asked(group) {
  const parts = group.asks.map(({ members, requests }) => {
    const devices = Object.keys(requests).filter((name) => name.includes("/"));
    const names = devices.length ? devices : ["cpu", "memory"].filter((name) => name in requests);
    const wants = names.map((name) => (name === "memory" ? requests[name] : `${requests[name]} ${resource(name)}`));
    return `${members} × ${wants.length ? `(${wants.join(", ")})` : "(nothing)"}`;
  });
  return parts.join(" + ") || (group.minimum ? count(group.minimum, "member") : "–");
}
