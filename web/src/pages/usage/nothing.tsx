import type { ComponentChildren } from "preact";

/** An empty part of the page, with the reason and a way to change it. */
export function Nothing({ title, note }: { title: string; note: ComponentChildren }) {
  return (
    <div class="usage-nothing">
      <p>{title}.</p>
      <p class="usage-note">{note}</p>
    </div>
  );
}
