// Where each node is drawn: grouped by a label, in boxes as large as fit.

const NAMED = { least: 52, high: 40 }; // boxes with a name
const PLAIN = [
  { least: 34, high: 20 },
  { least: 22, high: 16 },
  { least: 13, high: 11 },
  { least: 8, high: 8 },
];
const HEAD = 18,
  GAP = 3,
  BELOW = 5;
const MOST_CELLS = 16;

// The labels by which nodes can be grouped, those with the fewest different values first.
export function labelsOf(nodes) {
  const values = new Map();
  nodes.forEach((node) =>
    Object.entries(node.topology).forEach(([key, value]) => {
      if (!values.has(key)) values.set(key, new Set());
      values.get(key).add(value);
    }),
  );
  return [...values.keys()].sort(
    (one, other) => values.get(one).size - values.get(other).size || (one < other ? -1 : 1),
  );
}

// The label that groups nodes if none is chosen: a rack, else the finest one that still makes groups.
export function usualLabel(nodes, labels) {
  const racks = labels.find((key) => /rack/.test(key));
  const zones = labels.find((key) => key === "topology.kubernetes.io/zone");
  return racks || zones || labels.find((key) => new Set(nodes.map((node) => node.topology[key])).size > 1) || "";
}

export function grouped(nodes, label) {
  const groups = new Map();
  nodes.forEach((node) => {
    const value = label ? (node.topology[label] ?? null) : null;
    if (!groups.has(value)) groups.set(value, []);
    groups.get(value).push(node);
  });
  const name = (value) => (value === null ? "￿" : value.replace(/\d+/g, (digits) => digits.padStart(8, "0")));
  return [...groups]
    .map(([value, members]) => ({ value, nodes: members }))
    .sort((one, other) => (name(one.value) < name(other.value) ? -1 : 1));
}

// Boxes of all nodes for this width; the largest size at which all fit into the height, else the smallest.
export function placed(groups, { width, height, headed }) {
  const sizes = [NAMED, ...PLAIN];
  const size = sizes.find((each) => measured(groups, each, width, headed).height <= height) || sizes.at(-1);
  const { columns, height: needed } = measured(groups, size, width, headed);
  const wide = Math.min(width / columns, size.least * 1.7),
    rows = [];
  let top = 0;
  groups.forEach((group) => {
    if (headed) {
      rows.push({ top, high: HEAD, head: group });
      top += HEAD;
    }
    for (let at = 0; at < group.nodes.length; at += columns) {
      const boxes = group.nodes
        .slice(at, at + columns)
        .map(({ name }, column) => ({ name, left: column * wide, top, wide: wide - GAP, high: size.high }));
      rows.push({ top, high: size.high + GAP, boxes });
      top += size.high + GAP;
    }
    top += BELOW;
  });
  return { rows, columns, height: Math.max(1, needed), named: size === NAMED };
}

function measured(groups, size, width, headed) {
  const columns = Math.max(1, Math.floor((width + GAP) / size.least));
  const even = evenColumns(groups, columns);
  const high = groups.reduce(
    (sum, { nodes }) => sum + (headed ? HEAD : 0) + BELOW + Math.ceil(nodes.length / even) * (size.high + GAP),
    0,
  );
  return { columns: even, height: high };
}

// A rack of eight nodes is drawn in one row or in two rows of four, rather than in rows of seven and one.
function evenColumns(groups, most) {
  const largest = Math.max(1, ...groups.map(({ nodes }) => nodes.length));
  return Math.ceil(largest / Math.ceil(largest / most));
}

// What each device of a node does; null if the node is drawn as a bar, because it has no devices or too many.
export function cellsOf(node) {
  const number = Number(node.allocatable[node.scarcest]);
  if (!node.scarcest.includes("/") || !(number >= 1 && number <= MOST_CELLS)) return null;
  const cells = Array.from({ length: number }, () => ({ part: null, reserved: null }));
  const taken = node.parts.filter((part) => part.state !== "reserved");
  let at = 0;
  taken.forEach((part) => {
    for (let left = Math.round(part.share * number); left > 0 && at < number; left -= 1, at += 1) cells[at].part = part;
  });
  // What is reserved is free, or is left by others first.
  const open = [
    ...cells.filter((cell) => !cell.part),
    ...cells.filter((cell) => cell.part && cell.part.state === "leaving"),
    ...cells.filter((cell) => cell.part && cell.part.state !== "leaving"),
  ];
  node.parts
    .filter((part) => part.state === "reserved")
    .forEach((part) => {
      open.splice(0, Math.round(part.share * number)).forEach((cell) => {
        cell.reserved = part;
      });
    });
  return cells;
}
