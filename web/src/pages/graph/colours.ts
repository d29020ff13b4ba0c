import type { Kind } from "../../api/types";

/** The colours of tokens.css as numbers, because WebGL cannot read variables. */
export interface Colours {
  kinds: Record<Kind, string>;
  ink: string;
  outside: string;
  faded: string;
  edge: string;
  edgeNear: string;
  surface: string;
  font: string;
}

const KINDS: readonly Kind[] = ["fact", "decision", "preference", "todo", "relationship", "event", "lesson"];

/** Return the colours of the current theme. */
export function coloursNow(): Colours {
  const probe = document.createElement("span");
  document.body.append(probe);
  const of = (token: string) => {
    probe.style.color = `var(--${token})`;
    return getComputedStyle(probe).color;
  };
  const colours = {
    kinds: Object.fromEntries(KINDS.map((one) => [one, of(one)])) as Record<Kind, string>,
    ink: of("ink"),
    outside: of("other"),
    faded: of("line"),
    edge: of("line-strong"),
    edgeNear: of("ink-faint"),
    surface: of("surface"),
    font: getComputedStyle(document.body).fontFamily,
  };
  probe.remove();
  return colours;
}

/** Call a function when the theme changes. Returns the unsubscribe function. */
export function onLook(told: () => void): () => void {
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  const observer = new MutationObserver(told);
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  scheme.addEventListener("change", told);
  return () => {
    observer.disconnect();
    scheme.removeEventListener("change", told);
  };
}
