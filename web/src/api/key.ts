import { remember, remembered } from "../app/remembered";

const FRAGMENT = "#key=";
let kept: string | null = null;

/**
 * The token from `nacre open`, sent with each request in addition to the cookie. Cookies are shared by all ports of a
 * host; this storage is not.
 */
export function key(): string {
  kept ??= remembered("key");
  return kept ?? "";
}

/** Take the token from the address and remove it there. */
export function takeKey(): void {
  if (!location.hash.startsWith(FRAGMENT)) return;
  kept = location.hash.slice(FRAGMENT.length);
  remember("key", kept);
  history.replaceState(null, "", location.pathname + location.search);
}
