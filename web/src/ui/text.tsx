import type { ComponentChildren } from "preact";
import { language } from "../i18n";
import { common } from "../i18n/common";
import { said } from "../i18n/said";
import { Badge } from "./controls";
import { isHidden, segments } from "./hidden";
import "./text.css";

/** Plain text of any origin. Invisible characters and those that change the direction are shown by number. */
export function Text({ children }: { children: string }) {
  if (!isHidden(children)) return <>{children}</>;
  return (
    <>
      {segments(children).map((part, index) =>
        part.hidden ? (
          <span key={index} class="hidden-character">
            {part.text}
          </span>
        ) : (
          part.text
        ),
      )}
    </>
  );
}

/** A text of nacre in the current language, marked as English if it is not translated. */
export function Said({ children }: { children: string }) {
  const text = said(children);
  return (
    <span lang={text === children && language.value !== "en" ? "en" : undefined}>
      <Text>{text}</Text>
    </span>
  );
}

/**
 * The frame around text of any origin. Outside text gets a striped edge and a label outside its box. Nothing in the text
 * reaches beyond that box, so it cannot fake or hide the label.
 */
export function Origin(props: {
  trust: "trusted" | "untrusted";
  proposed?: boolean;
  /** A note next to the label, if the text does not come from a page or tool. */
  note?: string;
  children: ComponentChildren;
}) {
  const isOutside = props.trust === "untrusted";
  return (
    <div class={isOutside ? "origin outside" : "origin"}>
      {(isOutside || props.proposed) && (
        <p class="origin-mark">
          {isOutside && <Badge tone="warn">{common.value.untrusted}</Badge>}
          {props.proposed && <Badge>{common.value.proposed}</Badge>}
          {isOutside && <span>{props.note ?? common.value.untrustedNote}</span>}
        </p>
      )}
      <div class="origin-text" dir="auto">
        {props.children}
      </div>
    </div>
  );
}
