import type { ComponentChildren } from "preact";
import type { MemoryView, Validity } from "../../api/types";
import { bare } from "../../ui/hidden";
import { Facts, Section } from "../../ui/layout";
import { Said, Text } from "../../ui/text";
import { day, Time } from "../../ui/time";
import { timesOf } from "./edit";
import { t } from "./strings";

const MOST_TOGETHER = 6;

/** The facts about a memory next to its content. */
export function Aside({ view }: { view: MemoryView }) {
  const { memory, usage } = view;
  return (
    <aside class="aside memory-aside">
      <Facts
        rows={[
          [t.value.maturity, t.value.maturities[view.maturity]],
          [t.value.quality, t.value.qualityOf(usage.quality)],
          [t.value.usage, t.value.recalled(usage.recall_count)],
          [t.value.last, usage.last_recalled && <Time at={usage.last_recalled} />],
          [t.value.inContext, usage.shown > 0 && t.value.shown(usage.shown, usage.followed, usage.broken)],
          [t.value.speaker, t.value.speakers[memory.speaker]],
          [t.value.updated, memory.updated !== memory.created && <Time at={memory.updated} />],
          [t.value.valid, range(memory.valid)],
          [t.value.expires, memory.expires_on && <Time at={memory.expires_on} />],
          [t.value.tags, memory.tags.length > 0 && <Text>{memory.tags.join(", ")}</Text>],
          [t.value.triggers, memory.triggers.length > 0 && <Text>{memory.triggers.join(", ")}</Text>],
          [t.value.trigger_times, timesOf(memory) && `${view.deliveries} / ${timesOf(memory)}`],
        ]}
      />
      <details>
        <summary>{t.value.facts}</summary>
        <Facts
          rows={[
            [t.value.importance, `${memory.importance} / 10`],
            [t.value.expiry, memory.expiry],
            [t.value.scope, memory.scope],
            [t.value.file, view.path && <Text>{view.path}</Text>],
            [t.value.id, <code key="id">{memory.id.slice(-8)}</code>],
          ]}
        />
      </details>
    </aside>
  );
}

/** Linked memories, then those used in the same sessions. */
export function Related({ view: { links, together } }: { view: MemoryView }) {
  const linked = new Set(links.map(({ other }) => other));
  const used = together
    .filter(({ memory, sessions }) => sessions > 1 && !linked.has(memory.id))
    .slice(0, MOST_TOGETHER);
  if (!links.length && !used.length) return null;
  return (
    <Section title={t.value.related}>
      <ul class="memory-links">
        {links.map((one) => (
          <Other key={`${one.rel} ${one.other} ${one.is_outgoing}`} id={one.other} subject={one.subject}>
            {one.is_outgoing ? "" : "← "}
            {t.value.relations[one.rel] ?? one.rel}
            {one.reason && (
              <>
                {" · "}
                <Said>{one.reason}</Said>
              </>
            )}
          </Other>
        ))}
        {used.map(({ memory, sessions }) => (
          <Other key={memory.id} id={memory.id} subject={memory.subject}>
            {t.value.together(sessions)}
          </Other>
        ))}
      </ul>
    </Section>
  );
}

function Other(props: { id: string; subject: string | null; children: ComponentChildren }) {
  return (
    <li>
      <a href={`/memories/${props.id}`} dir="auto">
        <Text>{props.subject ? bare(props.subject) : props.id.slice(-8)}</Text>
      </a>
      <span class="faint">{props.children}</span>
    </li>
  );
}

function range(valid: Validity): string | null {
  const known = valid as { since?: string | null; until?: string | null };
  if (!known.since && !known.until) return null;
  return `${known.since ? day(known.since) : ""} – ${known.until ? day(known.until) : t.value.now}`;
}
