// What the address remembers: the open gang, and how the panels are arranged and filtered.

const followers = [];

function read() {
  return new URLSearchParams(location.hash.slice(1));
}

export function get(name) {
  return read().get(name) || "";
}

function hrefWith(name, value) {
  const values = read();
  if (value) values.set(name, value);
  else values.delete(name);
  return `#${values.toString().replaceAll("%2F", "/")}`;
}

// With `step`, Back returns to the address before.
export function set(name, value, { step = false } = {}) {
  if (get(name) === value) return;
  history[step ? "pushState" : "replaceState"](null, "", hrefWith(name, value));
  followers.forEach((changed) => changed());
}

export function onChange(changed) {
  followers.push(changed);
}

addEventListener("hashchange", () => followers.forEach((changed) => changed()));
addEventListener("popstate", () => followers.forEach((changed) => changed()));
