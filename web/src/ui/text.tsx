import type { ComponentChildren } from "preact";
import { language } from "../i18n";
import { common } from "../i18n/common";
import { said } from "../i18n/said";
import { Badge } from "./controls";
import { isHidden, segments } from "./hidden";
import "./text.css";

/** Plain text of any origin: characters that nobody sees, or that turn the direction of others, are shown by number. */
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

/** What nacre itself says, in the language that is shown; marked as English where it is not translated. */
export function Said({ children }: { children: string }) {
  const text = said(children);
  return (
    <span lang={text === children && language.value !== "en" ? "en" : undefined}>
      <Text>{text}</Text>
    </span>
  );
}

/**
 * What frames text of any origin. Text from outside gets a striped edge and a label outside its own box: nothing in
 * the text reaches beyond that box, so nothing can look like the label or its absence.
 */
export function Origin(props: {
  trust: "trusted" | "untrusted";
  proposed?: boolean;
  /** What is said beside the label, where it is no page or tool that the text comes from. */
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
