import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import "./layout.css";

/** A page: title, note, actions and content. */
export function Page(props: {
  title: string;
  /** Shown in place of the title. Contains the page's only `h1`. */
  heading?: ComponentChildren;
  note?: ComponentChildren;
  actions?: ComponentChildren;
  /** Use the whole width, for lists with details and for pictures. */
  wide?: boolean;
  children: ComponentChildren;
}) {
  useEffect(() => {
    document.title = `${props.title} · nacre`;
  }, [props.title]);
  return (
    <div class={props.wide ? "page wide" : "page"}>
      <header class="page-head">
        <div>
          {props.heading ?? <h1>{props.title}</h1>}
          {props.note && <p class="page-note">{props.note}</p>}
        </div>
        {props.actions && <div class="buttons">{props.actions}</div>}
      </header>
      {props.children}
    </div>
  );
}

/** A part of a page. */
export function Section(props: {
  title: string;
  note?: ComponentChildren;
  actions?: ComponentChildren;
  children: ComponentChildren;
}) {
  return (
    <section class="section">
      <header>
        <h2>{props.title}</h2>
        {props.note && <span class="faint">{props.note}</span>}
        {props.actions && <div class="section-actions">{props.actions}</div>}
      </header>
      {props.children}
    </section>
  );
}

/** Names and values, as next to a memory or a session. */
export function Facts({ rows }: { rows: readonly (readonly [name: string, value: ComponentChildren])[] }) {
  return (
    <dl class="facts">
      {rows
        .filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false)
        .map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
    </dl>
  );
}
