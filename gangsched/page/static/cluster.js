// The cluster: nodes by a label of one's choice, on a canvas that draws only what is in view.

import * as address from "./address.js";
import { all, getHead, node as nodeNamed, versionOf } from "./store.js";
import { grouped, labelsOf, placed, usualLabel } from "./layout.js";
import { gangOf, paintNode, paintPart, palette, partAt } from "./paint.js";
import { mark, markedGang, onMark } from "./mark.js";
import { byId, count, full, list, make, say, setHidden } from "./text.js";
import { MOST, showRows } from "./rows.js";
import { opener } from "./gangs.js";
import { ghostsOn, onGhosts } from "./ghosts.js";

const NONE = "none";
const LEGEND = [
  ["running", "running"],
  ["starting", "starting"],
  ["leaving", "leaving"],
  ["held", "held for members to come"],
  ["reserved", "reserved by a plan"],
  ["other", "other pods"],
];
const TALLEST = 0.72; // of the window's height
let plan = { rows: [], height: 1, columns: 1, named: false },
  colours = palette(),
  laidOut = "",
  chosen = "",
  due = false;

export function showCluster() {
  const nodes = all("node"),
    { hidden } = getHead();
  say(byId("hidden"), hidden || "");
  setHidden(byId("no-nodes"), Boolean(nodes.length || hidden));
  layOut(nodes);
  if (chosen && !nodeNamed(chosen)) chosen = "";
  describe();
  showTable(nodes);
  drawSoon();
}

function showLabels(nodes) {
  const select = byId("by"),
    labels = labelsOf(nodes);
  showRows(select, [NONE, ...labels], {
    key: (label) => label,
    make: (label) => make("option", label === NONE ? "nothing" : label),
    fill: (option, label) => {
      option.value = label;
    },
  });
  const wanted = address.get("by");
  select.value = wanted === NONE || labels.includes(wanted) ? wanted : usualLabel(nodes, labels) || NONE;
}

function layOut(nodes) {
  const width = byId("view").clientWidth,
    height = Math.floor(innerHeight * TALLEST);
  const now = [versionOf("places"), width, height, address.get("by")].join();
  if (now === laidOut) return;
  laidOut = now;
  showLabels(nodes);
  const label = byId("by").value;
  const groups = grouped(nodes, label === NONE ? "" : label);
  plan = placed(groups, { width, height, headed: label !== NONE });
  byId("space").style.height = `${plan.height}px`;
  byId("view").style.maxHeight = `${height}px`;
}

function drawSoon() {
  if (!due) requestAnimationFrame(drawNow);
  due = true;
}

function drawNow() {
  due = false;
  const view = byId("view"),
    canvas = byId("grid"),
    scale = devicePixelRatio || 1;
  const width = view.clientWidth,
    height = Math.min(plan.height, parseFloat(view.style.maxHeight) || plan.height);
  if (canvas.width !== Math.floor(width * scale) || canvas.height !== Math.floor(height * scale)) {
    canvas.width = Math.floor(width * scale);
    canvas.height = Math.floor(height * scale);
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d"),
    from = view.scrollTop;
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.translate(0, -from);
  const given = { colours, marked: markedGang(), named: plan.named };
  plan.rows.forEach((row) => {
    if (row.top + row.high < from || row.top > from + height) return;
    if (row.head) drawHead(pen, row);
    else row.boxes.forEach((box) => paintBox(pen, box, given));
  });
}

function paintBox(pen, box, given) {
  const node = nodeNamed(box.name);
  // It may have gone since the nodes were laid out.
  if (node) paintNode(pen, box, node, { ...given, ghosts: ghostsOn(box.name), chosen: box.name === chosen });
}

function drawHead(pen, { top, head }) {
  pen.fillStyle = colours.soft;
  pen.font = "11px system-ui, sans-serif";
  pen.fillText(`${head.value ?? "without this label"} · ${count(head.nodes.length, "node")}`, 0, top + 13);
}

// Words

function requested(node) {
  return (
    Object.keys(node.allocatable)
      .filter((name) => name !== "pods" && name in node.requested)
      .map((name) => `${name} ${node.requested[name]} of ${node.allocatable[name]}`)
      .join(", ") || "nothing"
  );
}

function partsOf(node) {
  return node.parts
    .filter((part) => part.name !== null)
    .map((part) => `${full(part)} (${part.pods}${part.state === "running" ? "" : ` ${part.state}`})`);
}

function described(node) {
  return [`${node.name}: ${requested(node)}`, count(node.pods, "pod"), list(partsOf(node)), node.closed]
    .filter(Boolean)
    .join("; ");
}

function describe() {
  const node = nodeNamed(chosen);
  say(byId("node"), node ? described(node) : "");
  const gangs = node ? [...new Set(node.parts.map(gangOf).filter(Boolean))] : [];
  showRows(byId("node-gangs"), gangs, { key: (gang) => gang, make: madeOpener, fill: () => {} });
}

function madeOpener(gang) {
  const item = make("li");
  item.append(opener(gang));
  return item;
}

function showTable(nodes) {
  if (!byId("table-of-nodes").open) return;
  const body = byId("nodes").tBodies[0];
  showRows(body, nodes.slice(0, MOST), {
    key: (node) => node.name,
    make: madeRow,
    fill: (row, node) =>
      [
        node.closed ? `${node.name} (${node.closed})` : node.name,
        requested(node),
        String(node.pods),
        list(partsOf(node)) || "–",
      ].forEach((text, at) => say(row.cells[at], text)),
  });
  say(byId("more-nodes"), nodes.length > MOST ? `and ${count(nodes.length - MOST, "more node")}` : "");
}

function madeRow() {
  const row = make("tr");
  row.append(make("td"), make("td"), make("td", "", "number"), make("td"));
  return row;
}

// Pointing and choosing

function boxAt(event) {
  const x = event.offsetX,
    y = event.offsetY + byId("view").scrollTop;
  const row = plan.rows.find((each) => each.boxes && y >= each.top && y < each.top + each.high);
  const box = row && row.boxes.find((each) => x >= each.left && x < each.left + each.wide);
  const node = box && nodeNamed(box.name);
  return node ? { name: box.name, part: partAt(box, node, plan.named, x, y) } : null;
}

function choose(name) {
  chosen = name;
  describe();
  drawSoon();
  const row = plan.rows.find((each) => each.boxes && each.boxes.some((box) => box.name === name)),
    view = byId("view");
  if (!row) return;
  if (row.top < view.scrollTop) view.scrollTop = row.top;
  if (row.top + row.high > view.scrollTop + view.clientHeight) view.scrollTop = row.top + row.high - view.clientHeight;
}

function moved(key) {
  const boxes = plan.rows.flatMap((row) => row.boxes || []),
    at = boxes.findIndex((box) => box.name === chosen);
  if (!boxes.length) return "";
  if (at < 0) return boxes[0].name;
  const step = { ArrowRight: 1, ArrowLeft: -1, Home: -boxes.length, End: boxes.length }[key];
  if (step) return boxes[Math.min(boxes.length - 1, Math.max(0, at + step))].name;
  const rows = plan.rows.filter((row) => row.boxes),
    here = rows.findIndex((row) => row.boxes.includes(boxes[at]));
  const next = rows[here + (key === "ArrowDown" ? 1 : -1)],
    column = rows[here].boxes.indexOf(boxes[at]);
  return (next ? next.boxes[Math.min(column, next.boxes.length - 1)] : boxes[at]).name;
}

function drawLegend() {
  byId("legend").replaceChildren(
    ...LEGEND.map(([state, words]) => {
      const item = make("li", "", ""),
        sample = make("canvas");
      sample.width = sample.height = 28;
      const pen = sample.getContext("2d");
      pen.scale(2, 2);
      const part = { namespace: "", name: state === "other" ? null : "", state };
      paintPart(pen, { left: 1, top: 1, wide: 12, high: 12 }, part, { colours, marked: "" });
      sample.setAttribute("aria-hidden", "true");
      item.append(sample, make("span", words));
      return item;
    }),
    make("li", "⊘ closed to new pods"),
  );
}

function recolour() {
  colours = palette();
  drawLegend();
  drawSoon();
}

export function startCluster() {
  const grid = byId("grid"),
    view = byId("view");
  byId("by").addEventListener("change", (event) => address.set("by", event.target.value));
  grid.addEventListener("pointermove", (event) => {
    const found = boxAt(event),
      node = found && nodeNamed(found.name);
    mark(gangOf(found?.part));
    grid.title = node ? described(node) : "";
  });
  grid.addEventListener("pointerleave", () => mark(""));
  grid.addEventListener("click", (event) => {
    const found = boxAt(event);
    if (!found) return;
    choose(found.name);
    if (gangOf(found.part)) address.set("group", gangOf(found.part), { step: true });
  });
  grid.addEventListener("keydown", (event) => {
    if (!["ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown", "Home", "End"].includes(event.key)) return;
    event.preventDefault();
    choose(moved(event.key));
  });
  view.addEventListener("scroll", drawSoon);
  byId("table-of-nodes").addEventListener("toggle", () => showTable(all("node")));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  onMark(drawSoon);
  onGhosts(drawSoon);
  drawLegend();
}
