import type { Kind } from "../api/types";
import { common } from "../i18n/common";
import "./kind.css";

/** Return the colour of a kind, for charts and marks. */
export function colourOf(kind: Kind): string {
  return `var(--${kind})`;
}

/** A dot in the colour of a kind, with its name as the title and for screen readers. */
export function KindMark({ kind }: { kind: Kind }) {
  const name = common.value.kinds[kind];
  return (
    <span class="kind-mark" title={name}>
      <svg width="8" height="8" aria-hidden="true">
        <circle cx="4" cy="4" r="4" fill={colourOf(kind)} />
      </svg>
      <span class="sr-only">{name}: </span>
    </span>
  );
}

/** The dot with its name. */
export function KindName({ kind }: { kind: Kind }) {
  return (
    <span class="kind-name">
      <svg width="8" height="8" aria-hidden="true">
        <circle cx="4" cy="4" r="4" fill={colourOf(kind)} />
      </svg>
      {common.value.kinds[kind]}
    </span>
  );
}
