// Starts the panels, and shows them again when something has changed.

import * as address from "./address.js";
import { getHead, take } from "./store.js";
import { byId, refreshTimes, say } from "./text.js";
import { follow } from "./stream.js";
import { showCluster, startCluster } from "./cluster.js";
import { showDrawer, startDrawer } from "./drawer.js";
import { showFigures } from "./figures.js";
import { showGroups, startGroups } from "./groups.js";
import { showHappened, startHappened } from "./happened.js";
import { showLine, startLine } from "./line.js";
import { showStuck } from "./stuck.js";
import { startWhatIf } from "./whatif.js";

const EVERY_MS = 100; // shortest time between two looks of the page
const TICK_MS = 1000;
// One after the other, so that no frame is long.
const FRAMES = [[showFigures, showCluster], [showLine], [showStuck, showDrawer, showGroups, showHappened]];
let due = false,
  again = false,
  showedAt = -EVERY_MS;

function showSoon() {
  again = due;
  if (due) return;
  due = true;
  setTimeout(() => requestAnimationFrame(() => showFrame(0)), Math.max(0, showedAt + EVERY_MS - performance.now()));
}

function showFrame(at) {
  if (!at) again = false;
  FRAMES[at].forEach((show) => show());
  if (at + 1 < FRAMES.length) {
    requestAnimationFrame(() => showFrame(at + 1));
    return;
  }
  say(byId("trouble"), getHead().trouble || "");
  document.body.classList.add("shown");
  due = false;
  showedAt = performance.now();
  if (again) showSoon();
}

startCluster();
startDrawer();
startGroups();
startHappened();
startLine();
startWhatIf();
address.onChange(showSoon);
addEventListener("resize", showSoon);
byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("line-head").focus();
});
setInterval(refreshTimes, TICK_MS);
setInterval(showSoon, 10 * TICK_MS);
follow((change) => {
  take(change);
  showSoon();
});
