import type { GraphMap } from "../../api/types";

/** The colours of tokens.css as numbers, because WebGL cannot read variables. */
export interface Colours {
  of: (token: string) => string;
  font: string;
}

const TOKENS = ["fact", "preference", "todo", "decision", "lesson", "event", "relationship"];

/** Return the projects of a graph, the largest first, each with the token of its colour. */
export function projectsOf({ nodes }: GraphMap): Map<string | null, string> {
  const sizes = new Map<string | null, number>();
  for (const { project } of nodes) sizes.set(project, (sizes.get(project) ?? 0) + 1);
  const named = [...sizes.keys()].filter((one) => one !== null);
  const sorted = named.toSorted((one, other) => (sizes.get(other) ?? 0) - (sizes.get(one) ?? 0));
  const projects = sorted.map((one, at): [string | null, string] => [one, TOKENS[at] ?? "other"]);
  return new Map(sizes.has(null) ? [...projects, [null, "other"]] : projects);
}

/** Return the colours of the current theme. */
export function coloursNow(): Colours {
  const known = new Map<string, string>();
  const of = (token: string) => {
    const probe = document.createElement("span");
    document.body.append(probe);
    probe.style.color = `var(--${token})`;
    const colour = known.get(token) ?? getComputedStyle(probe).color;
    known.set(token, colour);
    probe.remove();
    return colour;
  };
  return { of, font: getComputedStyle(document.body).fontFamily };
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
