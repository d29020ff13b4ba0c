import type { Memory } from "../../api/types";
import { Badge } from "../../ui/controls";
import { OneSide } from "../../ui/diff";
import { Markdown } from "../../ui/markdown";
import { hasOwnSubject, MemoryFacts } from "../../ui/memory-facts";
import { Origin, Said, Text } from "../../ui/text";
import type { Item } from "./queue";
import { t } from "./strings";

const SHORT = 160;

/** What waits: what it says, why it waits, where it would belong. */
export function Card({ item }: { item: Item }) {
  const { memory } = item;
  return (
    <article
      class={memory.content.length < SHORT ? "review-card short" : "review-card"}
      aria-label={item.isCandidate ? t.value.candidate : t.value.memory}
    >
      <Head item={item} />
      <Origin trust={memory.trust} proposed={memory.proposed}>
        {hasOwnSubject(memory) && (
          <h2 class="review-subject">
            <Text>{memory.subject}</Text>
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
      <Badge tone={item.isCandidate ? "accent" : "warn"}>{item.isCandidate ? t.value.candidate : t.value.memory}</Badge>
      <MemoryFacts memory={memory} more={[t.value.toldBy[memory.speaker], t.value.importance(memory.importance)]} />
    </header>
  );
}

/** Why it waits, and the server's words where they say more. */
function Why({ item }: { item: Item }) {
  const tells = item.detail && !["found", "proposed", "contradicted"].includes(item.why);
  return (
    <div class="review-why">
      <p>{t.value.why[item.why]}</p>
      {tells && (
        <p class="review-detail" dir="auto">
          <Said>{item.detail ?? ""}</Said>
        </p>
      )}
    </div>
  );
}

/** The newer memory that says otherwise, with what differs. */
export function Newer({ memory, newer }: { memory: Memory; newer: Memory }) {
  return (
    <section class="review-newer">
      <h2>{t.value.newer}</h2>
      <MemoryFacts memory={newer} />
      <Origin trust={newer.trust} proposed={newer.proposed}>
        <OneSide text={newer.content} other={memory.content} side="after" />
      </Origin>
    </section>
  );
}
