import type { Memory } from "../../api/types";
import { Badge } from "../../ui/controls";
import { OneSide } from "../../ui/diff";
import { bare } from "../../ui/hidden";
import { Markdown } from "../../ui/markdown";
import { hasOwnSubject, MemoryFacts } from "../../ui/memory-facts";
import { Origin, Said, Text } from "../../ui/text";
import type { Item } from "./queue";
import { t } from "./strings";

const SHORT = 160;

/** A pending item: its text, the reason, and its place. */
export function Card({ item }: { item: Item }) {
  const { memory, newer } = item;
  if (newer) {
    return (
      <article class="stack review-card" aria-label={t.value.kinds.conflict}>
        <p>
          <Badge tone="warn">{t.value.kinds.conflict}</Badge>
        </p>
        <div class="review-two">
          <Side title={t.value.olderOne} memory={memory} other={newer} side="before" />
          <Side title={t.value.newerOne} memory={newer} other={memory} side="after" />
        </div>
        <Why item={item} />
      </article>
    );
  }
  return (
    <article
      class={memory.content.length < SHORT ? "stack review-card short" : "stack review-card"}
      aria-label={t.value.kinds[item.kind]}
    >
      <Head item={item} />
      <Origin trust={memory.trust} proposed={memory.proposed}>
        {hasOwnSubject(memory) && (
          <h2 class="review-subject">
            <Text>{bare(memory.subject)}</Text>
          </h2>
        )}
        <Markdown>{memory.content}</Markdown>
      </Origin>
      <Why item={item} />
    </article>
  );
}

export function Head({ item }: { item: Item }) {
  const { memory } = item;
  return (
    <header class="review-head">
      <Badge tone={item.kind === "candidate" ? "accent" : "warn"}>{t.value.kinds[item.kind]}</Badge>
      <MemoryFacts memory={memory} more={[t.value.toldBy[memory.speaker], t.value.importance(memory.importance)]} />
    </header>
  );
}

/** One of two conflicting memories, with its differences marked. */
function Side(props: { title: string; memory: Memory; other: Memory; side: "before" | "after" }) {
  const { memory, other, side } = props;
  return (
    <section>
      <h2>
        <a href={`/memories/${memory.id}`}>{props.title}</a>
      </h2>
      <MemoryFacts memory={memory} more={[t.value.toldBy[memory.speaker]]} />
      <Origin trust={memory.trust} proposed={memory.proposed}>
        <OneSide text={memory.content} other={other.content} side={side} />
      </Origin>
    </section>
  );
}

/** The reason for the review, with the server's details. */
function Why({ item }: { item: Item }) {
  const tells = item.detail && item.why !== "found";
  return (
    <div class="review-why">
      {item.later && (
        <p class="review-later" dir="auto">
          <b>{t.value.later}</b> <Text>{item.later}</Text>
        </p>
      )}
      <p>{t.value.why[item.why]}</p>
      {tells && (
        <p class="review-detail" dir="auto">
          <Said>{item.detail ?? ""}</Said>
        </p>
      )}
    </div>
  );
}
