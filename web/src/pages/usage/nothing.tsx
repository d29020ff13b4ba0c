import type { ComponentChildren } from "preact";

/** In a part of the page there is nothing: why, and what would change it. */
export function Nothing({ title, note }: { title: string; note: ComponentChildren }) {
  return (
    <div class="usage-nothing">
      <p>{title}.</p>
      <p class="usage-note">{note}</p>
    </div>
  );
}
