import type { Kind } from "../../api/types";

/** What tokens.css says, as numbers: the picture is drawn by WebGL, which knows no variables. */
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

/** The colours as they are now, in the light or in the dark. */
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

/** Call it when light becomes dark, or the other way. Returns what ends that. */
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
