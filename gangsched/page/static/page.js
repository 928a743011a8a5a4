"use strict";
// Shows what the server sends. Names are text, never markup: everything is made by createElement and textContent.

const ROWS = 300;  // of a table, so that it stays usable; the grid shows every node
const SIZES = [28, 20, 14, 10, 7];  // of a box in CSS pixels, by the number of nodes
const byId = (id) => document.getElementById(id);
const hues = new Map();
let nodes = [], chosen = -1;

function make(tag, text, name) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

function hue(gang) {
  if (!hues.has(gang)) hues.set(gang, (hues.size * 137.508) % 360);  // the golden angle: neighbours differ
  return hues.get(gang);
}

function share(node) {
  // Of the scarcest resource: what decides is an extended one, such as a GPU, if the node has one.
  const special = Object.keys(node.shares).filter((name) => name.includes("/"));
  return Math.min(1, Math.max(0, ...(special.length ? special : Object.keys(node.shares)).map((name) => node.shares[name])));
}

function layout() {
  const grid = byId("grid"), width = grid.clientWidth || 320;
  const size = SIZES.find((each) => Math.floor(width / each) * Math.floor(420 / each) >= nodes.length) || SIZES.at(-1);
  const columns = Math.max(1, Math.floor(width / size));
  return { grid, width, size, columns, rows: Math.ceil(nodes.length / columns) };
}

function draw() {
  const { grid, width, size, columns, rows } = layout(), scale = window.devicePixelRatio || 1;
  grid.width = width * scale;
  grid.height = Math.max(1, rows * size) * scale;
  grid.style.height = `${rows * size}px`;
  const pen = grid.getContext("2d"), style = getComputedStyle(document.body);
  pen.scale(scale, scale);
  nodes.forEach((node, at) => {
    const left = (at % columns) * size, top = Math.floor(at / columns) * size, box = size - 2;
    const filled = share(node) * box, gangs = node.groups, pods = Math.max(1, node.pods);
    let from = top + box;
    const fill = (part, colour) => {
      const high = filled * part;
      from -= high;
      pen.fillStyle = colour;
      pen.fillRect(left, from, box, high);
    };
    gangs.forEach((gang) => fill(gang.members / pods, `hsl(${hue(`${gang.namespace}/${gang.name}`)} 60% 50%)`));
    fill(Math.max(0, pods - gangs.reduce((sum, gang) => sum + gang.members, 0)) / pods, "#8b949e");
    pen.strokeStyle = at === chosen ? style.getPropertyValue("--focus") : style.getPropertyValue("--line");
    pen.lineWidth = at === chosen ? 3 : 1;
    pen.strokeRect(left + 0.5, top + 0.5, box, box);
  });
}

function described(node) {
  const gangs = node.groups.map((gang) => `${gang.namespace}/${gang.name} (${gang.members})`).join(", ");
  return `${node.name}: ${requested(node)}; ${node.pods} pods${gangs ? `; ${gangs}` : ""}${node.closed ? `; ${node.closed}` : ""}`;
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

function fillTable(id, rows, number) {
  const body = byId(id).tBodies[0];
  body.replaceChildren(...rows.map((cells) => {
    const row = document.createElement("tr");
    row.append(...cells.map((cell) => make("td", cell)));
    return row;
  }));
  if (number > rows.length) body.append(Object.assign(document.createElement("tr"), { innerText: "" }));
  if (number > rows.length) body.lastChild.append(make("td", `and ${number - rows.length} more`));
}

function show(view) {
  nodes = view.nodes;
  byId("summary").textContent = view.summary;
  byId("state").textContent = [view.trouble, view.hidden].filter(Boolean).join(" ");
  if (chosen >= nodes.length) chosen = -1;
  draw();
  if (chosen >= 0) byId("node").textContent = described(nodes[chosen]);
  fillTable("nodes", nodes.slice(0, ROWS).map((node) => [
    node.closed ? `${node.name} (${node.closed})` : node.name, requested(node), String(node.pods),
    node.groups.map((gang) => `${gang.namespace}/${gang.name} (${gang.members})`).join(", ") || "–",
  ]), nodes.length);
  const waiting = view.groups.filter((group) => group.waitingSince);
  byId("line").replaceChildren(...waiting.slice(0, ROWS).map((group) => {
    const item = document.createElement("li");
    item.append(make("span", `${group.namespace}/${group.name}`, "name"),
      make("span", ` ${group.phase || "not seen by an operator"} ${group.reason || ""}, ${group.members} of ${group.minimum} members`),
      make("p", group.message || ""));
    return item;
  }));
  if (!waiting.length) byId("line").replaceChildren(make("li", "Nothing waits."));
  fillTable("groups", view.groups.slice(0, ROWS).map((group) => [
    `${group.namespace}/${group.name}`, group.phase || "–", `${group.members}/${group.minimum}`, String(group.bound),
  ]), view.groups.length);
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
window.addEventListener("resize", draw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);

const events = new EventSource("/events");
events.onmessage = (event) => show(JSON.parse(event.data));
events.onerror = () => { byId("state").textContent = "gangsched dashboard does not answer any more: start it again."; };
