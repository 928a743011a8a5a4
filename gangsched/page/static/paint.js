// Draws nodes on a canvas. Each state has a colour and a pattern of its own, so that either tells it.

import { full } from "./text.js";
import { cellsOf } from "./layout.js";

const NAMES = [
  "text",
  "soft",
  "panel",
  "line",
  "empty",
  "focus",
  "run-1",
  "run-2",
  "run-3",
  "starting",
  "leaving",
  "held",
  "other",
];
const SHADES = 3;
const CROSSED = 7; // minimum size of a box that has room for a cross
const FAINT = 0.25; // how visible the others are while a gang is marked

export function palette() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

const shades = new Map();

function shade(gang) {
  if (!shades.has(gang)) {
    if (shades.size > 50000) shades.clear();
    let hash = 7;
    for (let at = 0; at < gang.length; at += 1) hash = (hash * 31 + gang.charCodeAt(at)) % 100003;
    shades.set(gang, 1 + (hash % SHADES));
  }
  return shades.get(gang);
}

export function gangOf(part) {
  return part && part.name !== null ? full(part) : "";
}

export function paintNode(pen, box, node, { colours, marked, ghosts, named, chosen }) {
  const { left, top, wide, high } = box;
  pen.fillStyle = colours.panel;
  pen.fillRect(left, top, wide, high);
  if (node.closed) hatch(pen, { left, top, wide, high }, colours.line, 5);
  const inner = innerOf(box, named);
  if (high > 10) {
    pen.strokeStyle = colours.line;
    pen.lineWidth = 1;
    pen.setLineDash(node.closed ? [3, 2] : []);
    pen.strokeRect(left + 0.5, top + 0.5, wide - 1, high - 1);
    pen.setLineDash([]);
  }
  if (named) {
    pen.fillStyle = colours.soft;
    pen.font = "10px system-ui, sans-serif";
    pen.fillText(clipped(pen, `${node.closed ? "⊘ " : ""}${node.name}`, wide - 6), left + 3, top + 11);
  }
  const cells = high > 10 ? cellsOf(node) : null;
  if (cells) paintCells(pen, inner, cells, { colours, marked });
  else paintBar(pen, inner, node, { colours, marked });
  if (node.closed && high <= 10) strike(pen, box, colours.text);
  if (ghosts.comes || ghosts.leaves) paintGhost(pen, inner, ghosts, colours);
  if (chosen) outline(pen, { left, top, wide, high }, colours.focus, 2);
}

// The part of a node at this point, for pointing at it.
export function partAt(box, node, named, x, y) {
  const inner = innerOf(box, named),
    cells = box.high > 10 ? cellsOf(node) : null;
  if (cells) {
    const found = cells.find((_, at) => inside(cellBox(inner, cells.length, at), x, y));
    return found ? found.part || found.reserved : null;
  }
  return bars(inner, node).find((each) => inside(each, x, y))?.part || null;
}

function inside({ left, top, wide, high }, x, y) {
  return x >= left && x < left + wide && y >= top && y < top + high;
}

function innerOf({ left, top, wide, high }, named) {
  const head = named ? 14 : high > 10 ? 2 : 0,
    edge = high > 10 ? 3 : 0;
  return { left: left + edge, top: top + head, wide: wide - 2 * edge, high: high - head - (high > 10 ? 3 : 0) };
}

function cellBox(inner, number, at) {
  const columns = number <= 4 ? number : Math.ceil(number / 2),
    rows = Math.ceil(number / columns);
  const wide = inner.wide / columns,
    high = inner.high / rows;
  const left = Math.round(inner.left + (at % columns) * wide),
    top = Math.round(inner.top + Math.floor(at / columns) * high);
  const right = Math.round(inner.left + ((at % columns) + 1) * wide),
    bottom = Math.round(inner.top + (Math.floor(at / columns) + 1) * high);
  return { left, top, wide: right - left - 1, high: bottom - top - 1 };
}

function paintCells(pen, inner, cells, { colours, marked }) {
  cells.forEach((cell, at) => {
    const box = cellBox(inner, cells.length, at);
    pen.fillStyle = colours.empty;
    pen.fillRect(box.left, box.top, box.wide, box.high);
    if (cell.part) paintPart(pen, box, cell.part, { colours, marked });
    if (cell.reserved) paintPart(pen, box, cell.reserved, { colours, marked });
  });
}

// The parts of a bar, one after the other. What is reserved is drawn over the end of the others if it does not fit.
function bars(inner, node) {
  let from = inner.left;
  const end = inner.left + inner.wide;
  return node.parts.map((part) => {
    const wide = Math.min(part.share * inner.wide, part.state === "reserved" ? inner.wide : end - from);
    const left = part.state === "reserved" ? Math.min(from, end - wide) : from;
    from = Math.max(from, left + wide);
    return { part, left, top: inner.top, wide, high: inner.high };
  });
}

function paintBar(pen, inner, node, { colours, marked }) {
  pen.fillStyle = colours.empty;
  pen.fillRect(inner.left, inner.top, inner.wide, inner.high);
  bars(inner, node).forEach((each) => {
    if (each.wide > 0) paintPart(pen, each, each.part, { colours, marked });
  });
}

export function paintPart(pen, box, part, { colours, marked }) {
  const gang = gangOf(part);
  pen.globalAlpha = marked && gang !== marked ? FAINT : 1;
  PATTERNS[gang ? part.state : "other"](pen, box, colours, gang);
  pen.globalAlpha = 1;
  if (marked && gang === marked) outline(pen, box, colours.text, 1.5);
}

const PATTERNS = {
  running(pen, box, colours, gang) {
    fill(pen, box, colours[`run-${shade(gang)}`]);
  },
  starting(pen, { left, top, wide, high }, colours) {
    pen.fillStyle = colours.starting;
    pen.beginPath();
    pen.moveTo(left, top);
    pen.lineTo(left, top + high);
    pen.lineTo(left + wide, top + high);
    pen.fill();
    outline(pen, { left, top, wide, high }, colours.starting, 1);
  },
  leaving(pen, { left, top, wide, high }, colours) {
    fill(pen, { left, top, wide, high }, colours.leaving);
    if (Math.min(wide, high) < CROSSED) return;
    pen.strokeStyle = colours.panel;
    pen.lineWidth = 1.5;
    pen.beginPath();
    pen.moveTo(left, top);
    pen.lineTo(left + wide, top + high);
    pen.moveTo(left + wide, top);
    pen.lineTo(left, top + high);
    pen.stroke();
  },
  held(pen, box, colours) {
    hatch(pen, box, colours.held, 4);
    outline(pen, box, colours.held, 1);
  },
  reserved(pen, box, colours) {
    outline(pen, box, colours.held, Math.min(2.5, Math.min(box.wide, box.high) / 6)); // who leaves shows within
  },
  other(pen, { left, top, wide, high }, colours) {
    const x = Math.min(2, wide / 4),
      y = Math.min(3, high / 4);
    fill(pen, { left: left + x, top: top + y, wide: wide - 2 * x, high: high - 2 * y }, colours.other);
  },
};

function paintGhost(pen, inner, { comes, leaves }, colours) {
  pen.strokeStyle = comes ? colours.focus : colours.leaving;
  pen.lineWidth = 2;
  pen.setLineDash([4, 2]);
  pen.strokeRect(inner.left + 1, inner.top + 1, inner.wide - 2, inner.high - 2);
  pen.setLineDash([]);
  if (inner.wide < 22 || inner.high < 14) return;
  const text = [comes && `+${comes}`, leaves && `−${leaves}`].filter(Boolean).join(" ");
  pen.font = "bold 12px system-ui, sans-serif";
  const wide = pen.measureText(text).width + 6;
  fill(
    pen,
    { left: inner.left + (inner.wide - wide) / 2, top: inner.top + inner.high / 2 - 8, wide, high: 16 },
    colours.panel,
  );
  pen.fillStyle = colours.text;
  pen.fillText(text, inner.left + (inner.wide - wide) / 2 + 3, inner.top + inner.high / 2 + 4);
}

function strike(pen, { left, top, wide, high }, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(left, top + high);
  pen.lineTo(left + wide, top);
  pen.stroke();
}

function fill(pen, { left, top, wide, high }, colour) {
  pen.fillStyle = colour;
  pen.fillRect(left, top, wide, high);
}

function outline(pen, { left, top, wide, high }, colour, thick) {
  pen.strokeStyle = colour;
  pen.lineWidth = thick;
  pen.strokeRect(left + thick / 2, top + thick / 2, Math.max(0, wide - thick), Math.max(0, high - thick));
}

function hatch(pen, { left, top, wide, high }, colour, every) {
  pen.save();
  pen.beginPath();
  pen.rect(left, top, wide, high);
  pen.clip();
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.beginPath();
  for (let at = left - high; at < left + wide; at += every) {
    pen.moveTo(at, top + high);
    pen.lineTo(at + high, top);
  }
  pen.stroke();
  pen.restore();
}

const clips = new Map();

// Measuring text is slow, and names stay.
function clipped(pen, text, wide) {
  const key = `${Math.floor(wide)} ${text}`;
  if (!clips.has(key)) {
    if (clips.size > 20000) clips.clear();
    let short = text;
    while (short.length > 1 && pen.measureText(short).width > wide)
      short = `${short.slice(0, short.endsWith("…") ? -2 : -1)}…`;
    clips.set(key, short);
  }
  return clips.get(key);
}
