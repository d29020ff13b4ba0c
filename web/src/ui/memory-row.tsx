import type { Memory } from "../api/types";
import { common } from "../i18n/common";
import { Badge } from "./controls";
import { KindMark } from "./kind";
import { Text } from "./text";
import { Time } from "./time";
import "./memory-row.css";

/** A memory in a list: subject, beginning of the content, place and trust. */
export function MemoryRow({ memory }: { memory: Memory }) {
  const more = beginning(memory);
  return (
    <a class="memory-row" href={`/memories/${memory.id}`}>
      <KindMark kind={memory.kind} />
      <span class="memory-row-words">
        <span class="memory-row-subject" dir="auto">
          <Text>{memory.subject}</Text>
        </span>
        {more && (
          <span class="memory-row-content" dir="auto">
            <Text>{more}</Text>
          </span>
        )}
      </span>
      <span class="memory-row-facts">
        {memory.trust === "untrusted" && <Badge tone="warn">{common.value.untrusted}</Badge>}
        {memory.proposed && <Badge>{common.value.proposed}</Badge>}
        {memory.project && <span class="memory-row-project">{memory.project}</span>}
        <Time at={memory.created} />
      </span>
    </a>
  );
}

/** Return the content without its subject and Markdown marks. */
export function beginning({ subject, content }: Memory): string {
  const start = subject.replace(/…$/, "");
  const rest = content.startsWith(start) ? content.slice(start.length) : content;
  return rest
    .slice(0, 300)
    .replace(/^[\s\p{P}]+(?=\s|\p{L}|\p{N}|$)/u, "")
    .replace(/^\s*[-*+]\s+/gm, "· ")
    .replace(/[*`#>]+|(?<!\w)_+|_+(?!\w)/g, "")
    .replace(/\s+/g, " ");
}
