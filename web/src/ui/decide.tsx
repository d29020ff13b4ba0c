import type { ComponentChildren } from "preact";
import "./decide.css";

/** The buttons for a decision, at a fixed place while scrolling; on phones near the thumb. */
export function Decide(props: {
  label: string;
  note?: string | false;
  aside: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <fieldset class="decide">
      <legend class="sr-only">{props.label}</legend>
      {props.children}
      <span class="decide-aside">{props.aside}</span>
      {props.note && <p class="decide-note">{props.note}</p>}
    </fieldset>
  );
}
