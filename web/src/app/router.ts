import { computed, signal } from "@preact/signals";

const place = signal(location.pathname + location.search);

/** The current path and query. */
export const path = computed(() => place.value.split("?", 1)[0] ?? "/");
export const query = computed(() => new URLSearchParams(place.value.slice(path.value.length)));

/** Go to an address of the dashboard. Other pages start at their top. */
export function go(to: string, { replace = false } = {}): void {
  if (to === place.peek()) return;
  const before = path.peek();
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  place.value = to;
  if (!replace && path.peek() !== before) scrollTo(0, 0);
}

/** Change parameters of the query; an empty value removes one. */
export function setQuery(changes: Record<string, string | null>): void {
  const next = new URLSearchParams(query.peek());
  for (const [name, value] of Object.entries(changes)) {
    if (value) next.set(name, value);
    else next.delete(name);
  }
  const text = next.toString();
  go(path.peek() + (text ? `?${text}` : ""), { replace: true });
}

/** Match a path with a pattern such as `/memories/:id`; null if it does not match. */
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

/** Handle links within the dashboard without a page load. */
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
