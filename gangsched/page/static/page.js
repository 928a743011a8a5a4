"use strict";
// Shows what the server sends. Names are text, never markup: all elements are made by createElement and textContent.

const ROWS = 300;  // maximum rows of a table, so that it stays usable; the grid shows every node
const SIZES = [96, 64, 40, 28, 20, 14, 10, 7];  // sizes of a box in CSS pixels; the largest at which all nodes fit is used
const NAMED = 64;  // minimum size of a box that has room for a name
const GROUPS_NAMED = 20;  // most groups that are named of those that leave for another
const MOST_BYTES = 1 << 20;  // maximum size of a manifest; the server refuses more
const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);
const things = new Map();  // by name, as the server sends them
let nodes = [], groups = [], chosen = -1, shown = "", openedAt = null, due = false, asking = new AbortController();
const SILENT_MS = 40000;  // longest silence before reconnecting; the server sends something at least every 15 seconds

function make(tag, text, name) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

// A screen reader repeats a text that is set again, even if it is the same.
function say(id, text) {
  const element = byId(id);
  if (element.textContent !== text) element.textContent = text;
}

function hue(gang) {
  let hash = 7;
  for (let at = 0; at < gang.length; at += 1) hash = (hash * 31 + gang.charCodeAt(at)) % 100003;
  return (hash * 137.508) % 360;  // the golden angle: similar names get very different colours
}

// Sorts groups that wait for something other than their turn behind all others.
const LAST = [2];

function compare(one, other) {
  for (let at = 0; at < Math.max(one.length, other.length); at += 1) {
    if (one[at] !== other[at]) return one[at] < other[at] || one[at] === undefined ? -1 : 1;
  }
  return 0;
}

function ordered(prefix, key) {
  const found = [];
  things.forEach((thing, name) => { if (name.startsWith(prefix)) found.push(thing); });
  return found.sort((one, other) => compare(key(one), key(other)));
}

function full(thing) { return `${thing.namespace}/${thing.name}`; }

function layout() {
  const grid = byId("grid"), width = grid.clientWidth || 320;
  const size = SIZES.find((each) => Math.floor(width / each) * Math.floor(420 / each) >= nodes.length) || SIZES.at(-1);
  const columns = Math.max(1, Math.floor(width / size));
  return { grid, width, size, columns, rows: Math.ceil(nodes.length / columns) };
}

function hatch(pen, left, top, wide, high, colour) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, wide, high);
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = left - high; at < left + wide; at += 4) {
    pen.moveTo(at, top + high);
    pen.lineTo(at + high, top);
  }
  pen.stroke();
  pen.restore();
}

function draw() {
  const { grid, width, size, columns, rows } = layout(), scale = window.devicePixelRatio || 1;
  grid.width = width * scale;
  grid.height = Math.max(1, rows * size) * scale;
  grid.style.height = `${rows * size}px`;
  const pen = grid.getContext("2d"), style = getComputedStyle(document.body);
  const edge = style.getPropertyValue("--line"), focus = style.getPropertyValue("--focus");
  const text = style.getPropertyValue("--text"), back = style.getPropertyValue("--back");
  pen.scale(scale, scale);
  nodes.forEach((node, at) => {
    const left = (at % columns) * size, top = Math.floor(at / columns) * size, box = size - 2;
    let from = top + box;
    node.parts.forEach((part) => {
      const high = Math.min(part.share * box, from - top);
      const colour = part.name === null ? "#8b949e" : `hsl(${hue(full(part))} 60% 50%)`;
      from -= high;
      if (part.held) {
        hatch(pen, left, from, box, high, colour);
      } else {
        pen.fillStyle = colour;
        pen.fillRect(left, from, box, high);
      }
    });
    pen.strokeStyle = at === chosen ? focus : edge;
    pen.lineWidth = at === chosen ? 3 : 1;
    pen.strokeRect(left + 0.5, top + 0.5, box, box);
    if (size >= NAMED) {
      pen.font = "11px system-ui, sans-serif";
      pen.lineWidth = 3;
      pen.strokeStyle = back;
      pen.fillStyle = text;
      pen.strokeText(node.name, left + 4, top + 14, box - 8);
      pen.fillText(node.name, left + 4, top + 14, box - 8);
    }
  });
}

function gangsOf(node) {
  return node.parts.filter((part) => part.name !== null)
    .map((part) => `${full(part)} (${part.held ? `${part.pods} held` : part.pods})`).join(", ");
}

function described(node) {
  return [`${node.name}: ${requested(node)}`, `${node.pods} pods`, gangsOf(node), node.closed].filter(Boolean).join("; ");
}

function requested(node) {
  return Object.keys(node.allocatable).filter((name) => name !== "pods" && name in node.requested)
    .map((name) => `${name} ${node.requested[name]} of ${node.allocatable[name]}`).join(", ") || "nothing";
}

function choose(at) {
  chosen = Math.min(Math.max(0, at), nodes.length - 1);
  byId("node").textContent = nodes.length ? described(nodes[chosen]) : "";
  draw();
}

function opener(group) {
  const button = make("button", full(group), "name");
  button.type = "button";
  button.addEventListener("click", () => {
    shown = `group/${full(group)}`;
    openedAt = placeOf(button);
    tellOne();
    byId("group").showModal();
    askWhatHelps(group);
  });
  return button;
}

// Each change replaces the buttons; the keyboard focus stays where it was.
function placeOf(element) {
  const list = element && element.matches("button.name") && element.closest("#line, #groups");
  return list ? { list, name: element.textContent } : null;
}

function focusAt(place) {
  const button = place && [...place.list.querySelectorAll("button.name")].find((each) => each.textContent === place.name);
  if (button) button.focus({ preventScroll: true });
}

function waits(group) { return Boolean(group && group.waitingSince); }

// A question whose answer is no longer needed would delay the next one.
function askNoMore() {
  asking.abort();
  say("helping", "");
  byId("helps").replaceChildren();
}

async function askWhatHelps(group) {
  const name = shown, said = byId("helping");
  askNoMore();
  if (!waits(group)) return;
  const mine = asking = new AbortController();
  said.textContent = "Finding out what would help …";
  let found;
  try {
    const address = `/helps/${encodeURIComponent(group.namespace)}/${encodeURIComponent(group.name)}`;
    const answer = await fetch(address, { signal: mine.signal });
    found = answer.ok ? await answer.json() : { error: await answer.text() };
  } catch (error) {
    found = { error: error.message };
  }
  if (mine.signal.aborted || !waits(things.get(name))) return;
  const helps = found.helps || [];
  said.textContent = found.error || (helps.length ? "What would help:" : "No remedy is known.");
  byId("helps").replaceChildren(...helps.map((each) => make("li", each)));
}

function tellOne() {
  const group = things.get(shown);
  if (!waits(group)) askNoMore();
  byId("group-head").textContent = shown.replace("group/", "");
  if (!group) {
    byId("group-state").textContent = "This group no longer exists.";
    byId("group-message").textContent = "";
    byId("timeline").replaceChildren();
    byId("moments").replaceChildren();
    return;
  }
  byId("group-state").textContent = `${group.phase || "not seen by an operator"} ${group.reason || ""}: ${group.members} of ${group.minimum} members exist, ${group.bound} are bound (${group.resource})`;
  byId("group-message").replaceChildren(group.message || "", ...leaving(group).map((each) => make("span", ` ${each.textContent}`)));
  const moments = group.timeline.map((moment) => ({ stage: moment.stage, at: Date.parse(moment.time) }));
  // This machine's clock may differ from the cluster's.
  const first = moments.length ? moments[0].at : 0, known = moments.length ? moments.at(-1).at : 0;
  const last = group.waitingSince ? Math.max(Date.now(), known) : known;
  byId("moments").replaceChildren(...moments.map((moment) =>
    make("li", `${moment.stage}: ${new Date(moment.at).toLocaleString()}${moment.at > first ? `, ${((moment.at - first) / 1000).toFixed(1)} s after it was created` : ""}`)));
  drawTimeline(moments, first, Math.max(last, first + 100));
}

// Who leaves for the group, if a plan is open for it.
function leaving(group) {
  if (!group.plan) return [];
  const who = group.plan.leaving.slice(0, GROUPS_NAMED).map((each) => `${each.pods} of ${each.group || "no group"}`);
  const more = group.plan.leaving.length - who.length;
  const told = group.plan.since ? `since ${new Date(group.plan.since).toLocaleTimeString()}` : "once this is written";
  const until = new Date(group.plan.expires).toLocaleTimeString();
  return [make("p", `Pods leave for it ${told}, until ${until} at the latest: ${who.join(", ")}${more > 0 ? `, and of ${more} more groups` : ""}.`)];
}

function drawTimeline(moments, first, last) {
  const draw = (tag, values, text) => {
    const made = document.createElementNS(SVG, tag);
    Object.entries(values).forEach(([name, value]) => made.setAttribute(name, value));
    if (text) made.textContent = text;
    return made;
  };
  const x = (at) => 20 + 560 * (at - first) / (last - first);
  const parts = [draw("line", { x1: 20, y1: 35, x2: 580, y2: 35 })];
  moments.forEach((moment, at) => {
    const left = x(moment.at), anchor = left > 450 ? "end" : "start";
    parts.push(draw("circle", { cx: left, cy: 35, r: 5 }));
    parts.push(draw("text", { x: left, y: [24, 52, 11, 65][at % 4], "text-anchor": anchor }, moment.stage));
  });
  byId("timeline").replaceChildren(...parts);
}

function fillTable(id, rows, number) {
  const body = byId(id).tBodies[0];
  body.replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells.map((cell) => {
      const made = make("td", typeof cell === "string" ? cell : "");
      if (typeof cell !== "string") made.append(cell);
      return made;
    }));
    return row;
  }));
  if (number > rows.length) {
    const row = document.createElement("tr");
    row.append(make("td", `and ${number - rows.length} more`));
    body.append(row);
  }
}

function show() {
  due = false;
  const wanted = byId("wanted").value.trim().toLowerCase(), named = (name) => name.toLowerCase().includes(wanted);
  const head = things.get("head"), focused = placeOf(document.activeElement), before = chosen >= 0 && chosen < nodes.length ? nodes[chosen].name : null;
  nodes = ordered("node/", (node) => [node.name]);
  groups = ordered("group/", (group) => [group.namespace, group.name]);
  chosen = before === null ? -1 : nodes.findIndex((node) => node.name === before);
  say("summary", head.summary);
  say("state", [head.trouble, head.hidden].filter(Boolean).join(" "));
  draw();
  say("node", chosen >= 0 ? described(nodes[chosen]) : "");
  const listedNodes = nodes.filter((node) => named(node.name) || named(gangsOf(node)));
  fillTable("nodes", listedNodes.slice(0, ROWS).map((node) => [
    node.closed ? `${node.name} (${node.closed})` : node.name, requested(node), String(node.pods), gangsOf(node) || "–",
  ]), listedNodes.length);
  const listed = groups.filter((group) => named(full(group)));
  const waiting = listed.filter(waits)
    .sort((one, other) => compare(one.turn || LAST, other.turn || LAST));
  byId("line").replaceChildren(...waiting.slice(0, ROWS).map((group) => {
    const item = make("li", "");
    item.append(opener(group),
      make("span", ` ${group.phase || "not seen by an operator"} ${group.reason || ""}, ${group.members} of ${group.minimum} members`),
      make("p", group.message || ""), ...leaving(group));
    return item;
  }));
  if (waiting.length > ROWS) byId("line").append(make("li", `and ${waiting.length - ROWS} more`));
  if (!waiting.length) byId("line").replaceChildren(make("li", wanted ? "No waiting group has this in its name." : "No group waits."));
  fillTable("groups", listed.slice(0, ROWS).map((group) => [
    opener(group), group.phase || "–", `${group.members}/${group.minimum}`, String(group.bound),
  ]), listed.length);
  focusAt(focused);
  if (byId("group").open) tellOne();
}

function take(change) {
  if (change.whole) things.clear();
  change.gone.forEach((name) => things.delete(name));
  Object.entries(change.set).forEach(([name, thing]) => things.set(name, thing));
  showSoon();
}

function showSoon() {
  if (!due) requestAnimationFrame(show);
  due = true;
}

async function tryManifest(file) {
  const said = byId("trying");
  byId("tried").replaceChildren();
  if (file.size > MOST_BYTES) {
    said.textContent = `${file.name} is larger than 1 MiB: try a part of it.`;
    return;
  }
  said.textContent = `Trying ${file.name} on a copy of the cluster …`;
  try {
    const answer = await fetch("/what-if", { method: "POST", headers: { "Content-Type": "application/yaml" }, body: await file.text() });
    const found = answer.headers.get("Content-Type").startsWith("application/json") ? await answer.json() : { error: await answer.text() };
    said.textContent = found.error || told(file.name, found);
    byId("tried").replaceChildren(...(found.groups || []).map(tried));
  } catch (error) {
    said.textContent = `${file.name} could not be tried: ${error.message}`;
  }
}

function told(name, found) {
  const elsewhere = Object.entries(found.elsewhere).map(([group, scheduler]) => `${group} belongs to the schedulerName ${scheduler}.`);
  const ignored = Object.entries(found.ignored).map(([kind, number]) => `${number} ${kind}`).join(", ");
  const whole = found.groups.filter((group) => group.whole).length;
  return [found.groups.length ? `${name}: ${whole} of ${found.groups.length + found.more} would be bound now.` : `${name} has no pods for gangsched: set schedulerName: gangsched in them.`,
    found.leaving.pods && `First, ${found.leaving.pods} pods would leave because their priority is lower; groups among them: ${found.leaving.groups}.`,
    ...elsewhere, ignored && `Ignored: ${ignored}.`, found.more && `${found.more} more are not shown.`].filter(Boolean).join(" ");
}

function tried(group) {
  const item = make("li", ""), on = Object.entries(group.nodes).map(([node, number]) => `${node} (${number})`).join(", ");
  item.append(make("strong", full(group)),
    make("span", group.whole ? " would be bound now" : ` would wait: ${group.reason}`, group.whole ? "good" : "bad"),
    make("p", group.whole ? `on ${on}` : group.message));
  return item;
}

byId("grid").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: layout().columns, ArrowUp: -layout().columns }[event.key];
  if (step === undefined || !nodes.length) return;
  event.preventDefault();
  choose(chosen < 0 ? 0 : chosen + step);
});
byId("grid").addEventListener("click", (event) => {
  const { size, columns } = layout();
  const at = Math.floor(event.offsetY / size) * columns + Math.min(columns - 1, Math.floor(event.offsetX / size));
  if (at < nodes.length) choose(at);
});
// A file that is dropped outside the drop zone must not replace the page.
window.addEventListener("dragover", (event) => { event.preventDefault(); byId("drop").classList.add("over"); });
window.addEventListener("dragleave", () => byId("drop").classList.remove("over"));
window.addEventListener("drop", (event) => {
  event.preventDefault();
  byId("drop").classList.remove("over");
  if (event.dataTransfer.files.length) tryManifest(event.dataTransfer.files[0]);
});
byId("file").addEventListener("change", (event) => {
  if (event.target.files.length) tryManifest(event.target.files[0]);
  event.target.value = "";
});
byId("group").addEventListener("close", () => {
  askNoMore();
  focusAt(openedAt);
});
byId("wanted").addEventListener("input", () => { if (things.has("head")) showSoon(); });
window.addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

let events, silence;

function hear() {
  clearTimeout(silence);
  silence = setTimeout(() => {
    events.close();
    say("state", "gangsched has sent nothing for a while: this page may be out of date. Reconnecting …");
    follow();
  }, SILENT_MS);
}

function follow() {
  events = new EventSource("/events");
  events.onmessage = (event) => {
    hear();
    take(JSON.parse(event.data));
  };
  events.addEventListener("alive", hear);
  events.onerror = () => {
    const ended = events.readyState === EventSource.CLOSED;
    if (ended) clearTimeout(silence);
    say("state", ended ? "gangsched no longer answers: open its page again."
      : "gangsched does not answer: this page may be out of date. Reconnecting …");
  };
  hear();
}

follow();
