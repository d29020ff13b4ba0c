// What this browser keeps for itself: how things look. Nothing of the home is kept here.
const PREFIX = "nacre.";

/** What was kept, or null, also where the browser keeps nothing. */
export function remembered(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key);
  } catch {
    return null;
  }
}

/** Keep it, or forget it. */
export function remember(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
  } catch {
    // A browser that keeps nothing shows the defaults next time.
  }
}
