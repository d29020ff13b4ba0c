import type { LinkView, MemoryView, Validity } from "../../api/types";
import { Facts } from "../../ui/layout";
import { placeOf } from "../../ui/memory-facts";
import { Said, Text } from "../../ui/text";
import { day, Time } from "../../ui/time";
import { timesOf } from "./edit";
import { t } from "./strings";

/** The facts about a memory next to its content. */
export function Aside({ view }: { view: MemoryView }) {
  const { memory, usage } = view;
  return (
    <aside class="memory-aside">
      <section>
        <h2>{t.value.facts}</h2>
        <Facts
          rows={[
            [t.value.project, placeOf(memory)],
            [t.value.importance, `${memory.importance} / 10`],
            [t.value.expiry, memory.expiry],
            [t.value.scope, memory.scope],
            [t.value.tags, memory.tags.length > 0 && <Text>{memory.tags.join(", ")}</Text>],
            [t.value.triggers, memory.triggers.length > 0 && <Text>{memory.triggers.join(", ")}</Text>],
            [t.value.trigger_times, timesOf(memory) && `${view.deliveries} / ${timesOf(memory)}`],
            [t.value.speaker, t.value.speakers[memory.speaker]],
            [t.value.created, <Time key="created" at={memory.created} />],
            [t.value.updated, memory.updated !== memory.created && <Time at={memory.updated} />],
            [t.value.valid, range(memory.valid)],
            [t.value.expires, memory.expires_on && <Time at={memory.expires_on} />],
            [t.value.file, view.path && <Text>{view.path}</Text>],
            [t.value.id, <code key="id">{memory.id.slice(-8)}</code>],
          ]}
        />
      </section>
      <section>
        <h2>{t.value.usage}</h2>
        <Facts
          rows={[
            [t.value.usage, t.value.recalled(usage.recall_count)],
            [t.value.last, usage.last_recalled && <Time at={usage.last_recalled} />],
            [t.value.inContext, usage.shown > 0 && t.value.shown(usage.shown, usage.followed, usage.broken)],
            [t.value.maturity, view.maturity],
            [t.value.quality, `${Math.round(usage.quality * 100)} %`],
          ]}
        />
      </section>
      <Links view={view} />
      <Together view={view} />
    </aside>
  );
}

function Links({ view }: { view: MemoryView }) {
  if (!view.links.length) return null;
  return (
    <section>
      <h2>{t.value.links}</h2>
      <ul class="memory-links">
        {view.links.map((one) => (
          <li key={`${one.rel} ${one.other} ${one.is_outgoing}`}>
            <span class="memory-relation">
              {one.is_outgoing ? "" : "← "}
              {t.value.relations[one.rel] ?? one.rel}
            </span>
            <Other one={one} />
            {one.reason && (
              <span class="memory-reason">
                <Said>{one.reason}</Said>
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Other({ one }: { one: LinkView }) {
  return (
    <a class="link" href={`/memories/${one.other}`} dir="auto">
      <Text>{one.subject ?? one.other.slice(-8)}</Text>
    </a>
  );
}

function Together({ view }: { view: MemoryView }) {
  if (!view.together.length) return null;
  return (
    <section>
      <h2>{t.value.together}</h2>
      <ul class="memory-links">
        {view.together.slice(0, 6).map(({ memory, sessions }) => (
          <li key={memory.id}>
            <a class="link" href={`/memories/${memory.id}`} dir="auto">
              <Text>{memory.subject}</Text>
            </a>
            <span class="memory-reason">{t.value.sessions(sessions)}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function range(valid: Validity): string | null {
  const known = valid as { since?: string | null; until?: string | null };
  if (!known.since && !known.until) return null;
  return `${known.since ? day(known.since) : ""} – ${known.until ? day(known.until) : t.value.now}`;
}
