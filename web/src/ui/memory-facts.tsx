import type { Memory } from "../api/types";
import { common } from "../i18n/common";
import { KindName } from "./kind";
import { Text } from "./text";
import { Time } from "./time";
import "./memory-facts.css";

/** A line of facts about a memory: kind, project, date and others. */
export function MemoryFacts({ memory, more }: { memory: Memory; more?: readonly string[] }) {
  return (
    <p class="memory-facts">
      <KindName kind={memory.kind} />
      {memory.project ? (
        <span>
          <Text>{memory.project}</Text>
        </span>
      ) : (
        !memory.inbox && <span>{common.value.holdsEverywhere}</span>
      )}
      <span>
        <Time at={memory.created} />
      </span>
      {more?.map((one) => (
        <span key={one}>{one}</span>
      ))}
    </p>
  );
}

/** Return true if a subject differs from the beginning of the content. */
export function hasOwnSubject({ subject, content }: Memory): boolean {
  const plain = (text: string) => text.replace(/[\s*_`#>.…。]+/g, "").toLowerCase();
  return !plain(content).startsWith(plain(subject));
}
