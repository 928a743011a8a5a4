// What if: a manifest is tried on a copy of the cluster. Its members appear as ghosts on the nodes.

import { byId, count, duration, full, list, make, say, setHidden } from "./text.js";
import { showGhosts } from "./ghosts.js";

const MOST_BYTES = 1 << 20; // maximum size of a manifest; the server refuses more

export async function tryManifest(name, text) {
  const said = byId("trying");
  clear();
  if (new Blob([text]).size > MOST_BYTES) {
    said.textContent = `${name} is larger than 1 MiB: try a part of it.`;
    return;
  }
  said.textContent = `Trying ${name} on a copy of the cluster …`;
  try {
    const answer = await fetch("/what-if", {
      method: "POST",
      headers: { "Content-Type": "application/yaml" },
      body: text,
    });
    const isJson = (answer.headers.get("Content-Type") || "").startsWith("application/json");
    const found = isJson ? await answer.json() : { error: await answer.text() };
    said.textContent = found.error || told(name, found);
    if (!found.error) showAnswer(found);
  } catch (error) {
    said.textContent = `${name} could not be tried: ${error.message}`;
  }
}

function clear() {
  byId("tried").replaceChildren();
  showGhosts();
  setHidden(byId("forget"), true);
  setHidden(byId("compared"), true);
}

function showAnswer({ groups, leaving, strategies }) {
  byId("tried").replaceChildren(...groups.map(tried));
  const numbers = new Map();
  groups
    .filter((group) => group.whole)
    .forEach((group) => {
      Object.entries(group.nodes).forEach(([node, number]) => numbers.set(node, (numbers.get(node) || 0) + number));
    });
  showGhosts(numbers, new Map(Object.entries(leaving.nodes)));
  showStrategies(strategies);
  setHidden(byId("forget"), false);
}

// What each strategy would do, side by side; the chosen one is drawn into the cluster.
function showStrategies(strategies) {
  setHidden(byId("compared"), !strategies.length);
  byId("strategies").tBodies[0].replaceChildren(
    ...strategies.map((found) => {
      const row = make("tr"),
        button = make("button", found.strategy, "choice"),
        name = make("td");
      button.type = "button";
      button.addEventListener("click", () => showGhosts(new Map(Object.entries(found.nodes))));
      name.append(button);
      const nodes = Object.keys(found.nodes).length;
      row.append(name, make("td", String(found.whole), "number"), make("td", String(nodes), "number"));
      row.append(make("td", found.whole ? when(found) : "–"));
      return row;
    }),
  );
}

function when(group) {
  return group.after < 1 ? "now" : `in ${duration(Math.round(group.after))}`;
}

function told(name, found) {
  const elsewhere = Object.entries(found.elsewhere).map(
    ([group, scheduler]) => `${group} belongs to the schedulerName ${scheduler}.`,
  );
  const ignored = Object.entries(found.ignored)
    .map(([kind, number]) => `${number} ${kind}`)
    .join(", ");
  return [
    outcome(name, found),
    found.leaving.pods &&
      `First, ${count(found.leaving.pods, "pod")} of ${count(found.leaving.groups, "group")} would leave for them.`,
    ...elsewhere,
    ignored && `Ignored: ${ignored}.`,
    found.more && `${found.more} more are not shown.`,
  ]
    .filter(Boolean)
    .join(" ");
}

function outcome(name, found) {
  if (!found.groups.length) return `${name} has no pods for gangsched: set schedulerName: gangsched in them.`;
  const whole = found.groups.filter((group) => group.whole);
  const last = whole.reduce((latest, group) => (group.after > latest.after ? group : latest), { after: 0 });
  const bound = `${name}: ${whole.length} of ${found.groups.length + found.more} would be bound`;
  return last.after < 1 ? `${bound} now.` : `${bound}, the last ${when(last)}.`;
}

function tried(group) {
  const item = make("li"),
    on = Object.entries(group.nodes).map(([node, number]) => `${node} (${number})`);
  item.append(
    make("b", full(group)),
    make(
      "span",
      group.whole ? ` would be bound ${when(group)}` : ` would wait: ${group.reason}`,
      group.whole ? "good" : "bad",
    ),
    make("p", group.whole ? `on ${list(on)}` : group.message),
  );
  return item;
}

async function tryFile(file) {
  // A large file is refused before it is read.
  await tryManifest(file.name, file.size > MOST_BYTES ? " ".repeat(MOST_BYTES + 1) : await file.text());
}

export function startWhatIf() {
  const drop = byId("drop");
  // A file that is dropped outside the drop zone must not replace the page.
  addEventListener("dragover", (event) => {
    event.preventDefault();
    drop.classList.add("over");
  });
  addEventListener("dragleave", () => drop.classList.remove("over"));
  addEventListener("drop", (event) => {
    event.preventDefault();
    drop.classList.remove("over");
    if (event.dataTransfer.files.length) tryFile(event.dataTransfer.files[0]);
  });
  byId("file").addEventListener("change", (event) => {
    if (event.target.files.length) tryFile(event.target.files[0]);
    event.target.value = "";
  });
  byId("try").addEventListener("click", () => tryManifest("The manifest", byId("manifest").value));
  byId("forget").addEventListener("click", () => {
    clear();
    say(byId("trying"), "");
  });
}
