import { remember, remembered } from "../app/remembered";

const FRAGMENT = "#key=";
let kept: string | null = null;

/**
 * The word that `nacre open` gave this browser, sent with each request beside the cookie. Browsers send cookies to every
 * port of a host; what is kept here is of this port alone.
 */
export function key(): string {
  kept ??= remembered("key");
  return kept ?? "";
}

/** Take the word from the address, where it stands but once. */
export function takeKey(): void {
  if (!location.hash.startsWith(FRAGMENT)) return;
  kept = location.hash.slice(FRAGMENT.length);
  remember("key", kept);
  history.replaceState(null, "", location.pathname + location.search);
}
