import { computed, signal } from "@preact/signals";

const place = signal(location.pathname + location.search);

/** The path that is shown, and what stands behind its question mark. */
export const path = computed(() => place.value.split("?", 1)[0] ?? "/");
export const query = computed(() => new URLSearchParams(place.value.slice(path.value.length)));

/** Go to an address of the dashboard; to another page from its top. */
export function go(to: string, { replace = false } = {}): void {
  if (to === place.peek()) return;
  const before = path.peek();
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  place.value = to;
  if (!replace && path.peek() !== before) scrollTo(0, 0);
}

/** Change parts of the address behind the question mark; an empty value removes one. */
export function setQuery(changes: Record<string, string | null>): void {
  const next = new URLSearchParams(query.peek());
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const text = next.toString();
  go(path.peek() + (text ? `?${text}` : ""), { replace: true });
}

/** The parts of a path that a pattern names, as `/memories/:id`; null where it does not fit. */
export function match(pattern: string, at: string): Record<string, string> | null {
  const wanted = pattern.split("/");
  const given = at.replace(/(.)\/$/, "$1").split("/");
  if (wanted.length !== given.length) return null;
  const found: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const actual = given[index] ?? "";
    if (part.startsWith(":") && actual) found[part.slice(1)] = decode(actual);
    else if (part !== actual) return null;
  }
  return found;
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Follow links within the dashboard without loading it anew. */
export function startRouter(): void {
  addEventListener("popstate", () => {
    place.value = location.pathname + location.search;
  });
  document.addEventListener("click", (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
    if (link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
    if (link.hash && link.pathname === location.pathname) return;
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
