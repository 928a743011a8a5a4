// The marked gang: whatever belongs to it is marked in all panels, while it is
// pointed at, has the focus or is in the drawer.

const followers = [];
let marked = "",
  pointedAt = "",
  open = "";

export function markedGang() {
  return marked;
}

// The gang that is pointed at; empty if none is.
export function mark(gang) {
  pointedAt = gang;
  update();
}

// The gang in the drawer stays marked while no other one is pointed at.
export function keepMarked(gang) {
  open = gang;
  update();
}

function update() {
  const gang = pointedAt || open;
  if (gang === marked) return;
  marked = gang;
  document.querySelectorAll("[data-gang]").forEach(show);
  followers.forEach((changed) => changed());
}

// For an element that appears or stands for another gang from now on.
export function belongs(element, gang) {
  if (element.dataset.gang !== gang) element.dataset.gang = gang;
  show(element);
}

export function onMark(changed) {
  followers.push(changed);
}

function show(element) {
  element.classList.toggle("marked", marked !== "" && element.dataset.gang === marked);
}

function gangAt(target) {
  const found = target instanceof Element && target.closest("[data-gang]");
  return found ? found.dataset.gang : "";
}

document.addEventListener("pointerover", (event) => {
  if (!(event.target instanceof HTMLCanvasElement)) mark(gangAt(event.target));
});
document.addEventListener("focusin", (event) => mark(gangAt(event.target)));
document.documentElement.addEventListener("pointerleave", () => mark(""));
