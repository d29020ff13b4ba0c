import type { ComponentChildren } from "preact";
import "./decide.css";

/** Where one decides about what is shown: at the same place for each, also while one scrolls; on a phone, at the thumb. */
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
