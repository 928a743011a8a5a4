// Rows by key: a row that stays keeps its elements, so that a change moves neither the focus nor what is selected.

import { byId, say, setHidden } from "./text.js";

export const MOST = 300; // maximum rows of a list, so that it stays usable; filters find the others
const FIRST = 3; // rows of a list beside the line, until all are asked for
const opened = new Set();

// Show these items in the container; `make(key)` returns a new element, and `fill(element, item)` shows the item.
export function showRows(container, items, { key, make, fill }) {
  const known = new Map([...container.children].map((each) => [each.dataset.key, each]));
  let after = null;
  items.forEach((item) => {
    const name = key(item);
    let element = known.get(name);
    if (element) known.delete(name);
    else {
      element = make(item);
      element.dataset.key = name;
    }
    fill(element, item);
    const place = after ? after.nextSibling : container.firstChild;
    if (place !== element) container.insertBefore(element, place);
    after = element;
  });
  known.forEach((element) => element.remove());
}

// A short list in a panel of its own, which is absent if the list is empty. A button shows the others.
export function showSome(id, items, of) {
  const most = opened.has(id) ? MOST : FIRST,
    button = byId(`${id}-more`);
  setHidden(byId(`${id}-panel`), !items.length);
  showRows(byId(id), items.slice(0, most), of);
  setHidden(button, items.length <= most);
  say(button, `${items.length - most} more`);
  button.onclick = () => {
    opened.add(id);
    showSome(id, items, of);
    byId(id).children[FIRST].querySelector("button").focus();
  };
}
