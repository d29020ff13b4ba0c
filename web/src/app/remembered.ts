// Display preferences stored in this browser. No content of the home is stored here.
const PREFIX = "nacre.";

/** Return a stored value, or null if there is none or storage is disabled. */
export function remembered(key: string): string | null {
  try {
    return localStorage.getItem(PREFIX + key);
  } catch {
    return null;
  }
}

/** Store or delete a value. */
export function remember(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(PREFIX + key);
    else localStorage.setItem(PREFIX + key, value);
  } catch {
    // Without storage, the defaults apply next time.
  }
}
