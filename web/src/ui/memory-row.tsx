import type { Memory } from "../api/types";
import { common } from "../i18n/common";
import { Badge } from "./controls";
import { bare } from "./hidden";
import { KindName } from "./kind";
import { Text } from "./text";
import { Time } from "./time";
import "./memory-row.css";

/** A memory in one line: kind, sentence, project and trust. The day is left out where a heading has it. */
export function MemoryRow({ memory, undated }: { memory: Memory; undated?: boolean }) {
  const [sentence, more] = lead(memory);
  return (
    <a class="row memory-row" href={`/memories/${memory.id}`}>
      <KindName kind={memory.kind} />
      <span class="clip memory-row-words" dir="auto">
        <Text>{sentence}</Text>{" "}
        {more && (
          <span>
            <Text>{more}</Text>
          </span>
        )}
      </span>
      <span class="memory-row-facts">
        {memory.trust === "untrusted" && <Badge tone="warn">{common.value.untrusted}</Badge>}
        {memory.proposed && <Badge>{common.value.proposed}</Badge>}
        {memory.project && <span class="memory-row-project">{memory.project}</span>}
        {!undated && <Time at={memory.created} />}
      </span>
    </a>
  );
}

/** Return a memory's subject and the beginning of its other words, without Markdown marks. No word is repeated. */
export function lead({ subject, content }: Memory): [sentence: string, more: string] {
  const [start, text] = [bare(subject.replace(/…$/, "")), bare(content.slice(0, 400))];
  if (!text.startsWith(start)) return [bare(subject), text];
  if (subject.endsWith("…")) return [text, ""];
  return [start, text.slice(start.length).replace(/^[\s\p{P}]+(?=\s|\p{L}|\p{N}|$)/u, "")];
}
