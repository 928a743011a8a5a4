// What the server has sent: nodes, groups, the past, and the head of the page.
// Sorted lists are made only when they are asked for.

const kinds = { node: new Map(), group: new Map(), minute: new Map(), past: new Map() };
const sorted = new Map();
// How often each kind has changed, and how often which nodes there are, or where they are.
const version = { node: 0, group: 0, minute: 0, past: 0, head: 0, places: 0 };
let head = {};

export function take(change) {
  if (change.whole) Object.keys(kinds).forEach((kind) => forget(kind));
  change.gone.forEach((name) => {
    const [kind, rest] = parted(name);
    kinds[kind].delete(rest);
    touch(kind, true);
  });
  Object.entries(change.set).forEach(([name, thing]) => {
    if (name === "head") {
      head = { ...head, ...thing };
      version.head += 1;
      return;
    }
    const [kind, rest] = parted(name),
      before = kinds[kind].get(rest);
    kinds[kind].set(rest, thing);
    touch(kind, !before);
    if (before && kind === "node" && placeOf(before) !== placeOf(thing)) version.places += 1;
  });
}

function parted(name) {
  const at = name.indexOf("/");
  return [name.slice(0, at), name.slice(at + 1)];
}

function placeOf(node) {
  return JSON.stringify(node.topology);
}

function forget(kind) {
  kinds[kind].clear();
  touch(kind, true);
}

function touch(kind, names) {
  version[kind] += 1;
  if (!names) return;
  sorted.delete(kind);
  if (kind === "node") version.places += 1;
}

export function versionOf(...of) {
  return of.map((kind) => version[kind]).join();
}

export function getHead() {
  return head;
}

export function group(name) {
  return kinds.group.get(name);
}

export function courseOf(name) {
  return kinds.past.get(name);
}

export function node(name) {
  return kinds.node.get(name);
}

export function all(kind) {
  if (!sorted.has(kind)) sorted.set(kind, inOrder([...kinds[kind].keys()]));
  return sorted.get(kind).map((name) => kinds[kind].get(name));
}

// Numbers in names are ordered as numbers. Sorting such keys is several times as fast as comparing names in a function.
function inOrder(names) {
  return names
    .map(keyOf)
    .sort()
    .map((key) => key.slice(key.indexOf("\n") + 1));
}

const KEYS = new Map();

function keyOf(name) {
  if (!KEYS.has(name)) {
    if (KEYS.size > 50000) KEYS.clear();
    KEYS.set(name, `${name.replace(/\d+/g, (digits) => digits.padStart(8, "0"))}\n${name}`);
  }
  return KEYS.get(name);
}

export function waits(found) {
  return Boolean(found && found.waitingSince);
}

function neverFits(found) {
  return found.reason === "NeverFits";
}

// The line: first those that have a turn, in that order, then those that wait for something else.
export function line() {
  return all("group")
    .filter((found) => waits(found) && !neverFits(found))
    .sort((one, other) => compare(turn(one), turn(other)));
}

// The one in the line that has waited longest; null if the line is empty.
export function oldest() {
  const waiting = all("group").filter((found) => waits(found) && !neverFits(found));
  return waiting.reduce((first, each) => (!first || each.waitingSince < first.waitingSince ? each : first), null);
}

export function hopeless() {
  return all("group").filter((found) => waits(found) && neverFits(found));
}

function turn(found) {
  return found.turn || [2, found.waitingSince];
}

function compare(one, other) {
  for (let at = 0; at < Math.max(one.length, other.length); at += 1) {
    if (one[at] !== other[at]) return one[at] < other[at] || one[at] === undefined ? -1 : 1;
  }
  return 0;
}
