// Rows by key: a row that stays keeps its elements, so that a change moves neither the focus nor what is selected.

export const MOST = 300; // maximum rows of a list, so that it stays usable; filters find the others

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
