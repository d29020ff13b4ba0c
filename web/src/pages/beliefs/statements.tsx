import { useSignal } from "@preact/signals";
import { change, useOperation } from "../../api/cache";
import { me } from "../../api/me";
import type { Belief, Memory } from "../../api/types";
import { query, setQuery } from "../../app/router";
import { number } from "../../i18n/index";
import { Button, SaveOrCancel, Segments, TextField } from "../../ui/controls";
import { Dialog } from "../../ui/dialog";
import { bare } from "../../ui/hidden";
import { KindName } from "../../ui/kind";
import { lead } from "../../ui/memory-row";
import { Empty, Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { day } from "../../ui/time";
import { attempt, toast } from "../../ui/toast";
import { t } from "./strings";
import "./page.css";

const KINDS = ["preference", "decision", "fact"] as const;
const STEP = 20;
const DAY_MS = 86_400_000;

/** The statements that nacre considers true about a project or, without one, about the owner. */
export function Statements({ project }: { project: string | null }) {
  const replaced = query.value.get("replaced") !== null;
  const first = useOperation("beliefs", { project, kinds: [KINDS[0]], replaced, limit: STEP }, { keep: true });
  return (
    <div class="beliefs">
      <header>
        <h2>{t.value.title}</h2>
        <Segments
          label={t.value.which}
          value={replaced ? "all" : "current"}
          options={[
            ["current", t.value.current],
            ["all", t.value.replaced],
          ]}
          onPick={(picked) => setQuery({ replaced: picked === "all" ? "1" : null })}
        />
      </header>
      {KINDS.map((kind) => (
        <OfKind key={kind} off={kind !== KINDS[0] && !first.data} {...{ project, kind, replaced }} />
      ))}
      <Empty title={t.value.nothing}>{t.value.nothingNote}</Empty>
    </div>
  );
}

function OfKind(props: { project: string | null; kind: (typeof KINDS)[number]; replaced: boolean; off: boolean }) {
  const { project, kind, replaced, off } = props;
  const limit = useSignal(STEP);
  const found = useOperation("beliefs", { project, kinds: [kind], replaced, limit: limit.value }, { keep: true, off });
  if (found.data?.total === 0) return null;
  return (
    <section>
      <h3>
        <KindName kind={kind} /> {found.data && number(found.data.total)}
      </h3>
      <Show of={found} lines={4}>
        {({ beliefs, total }) => (
          <>
            <ul>
              {bySubject(beliefs).map((same) => (
                <li key={same[0]?.memory.id} class="belief-subject">
                  {same.map((belief) => (
                    <Line key={belief.memory.id} belief={belief} />
                  ))}
                </li>
              ))}
            </ul>
            {total > beliefs.length && (
              <Button
                look="quiet"
                onClick={() => {
                  limit.value += 5 * STEP;
                }}
              >
                {t.value.more(total - beliefs.length)}
              </Button>
            )}
          </>
        )}
      </Show>
    </section>
  );
}

/** Return the beliefs in groups with the same subject, the newest statement first. */
function bySubject(beliefs: readonly Belief[]): readonly Belief[][] {
  const groups = new Map<string, Belief[]>();
  for (const belief of beliefs) {
    const subject = words(belief.memory.subject);
    groups.set(subject, [...(groups.get(subject) ?? []), belief]);
  }
  return [...groups.values()];
}

function Line({ belief }: { belief: Belief }) {
  const { memory, replaced } = belief;
  return (
    <div class="belief">
      <div class="belief-words" dir="auto">
        <Statement memory={memory} />
        <Quote belief={belief} />
        {replaced.map((old) => (
          <p key={old.id} class="belief-old">
            <del>
              <Statement memory={old} />
            </del>{" "}
            {day(old.created)}
          </p>
        ))}
      </div>
      <div class="belief-actions">
        <span class="belief-days">
          {t.value.since(day(memory.valid.since ?? memory.created))}
          {memory.expires_on && <b>{t.value.until(day(shifted(memory.expires_on, -1)))}</b>}
        </span>
        {me.value?.owner && <Actions memory={memory} />}
      </div>
    </div>
  );
}

function Statement({ memory }: { memory: Memory }) {
  const [sentence, more] = lead(memory);
  return (
    <>
      <a href={`/memories/${memory.id}`}>
        <Text>{sentence}</Text>
      </a>
      {more && (
        <span class="belief-more">
          {" "}
          <Text>{more}</Text>
        </span>
      )}
    </>
  );
}

/** The words that state it and their speaker. Words that only repeat the statement are left out. */
function Quote({ belief: { memory, quote } }: { belief: Belief }) {
  if (!quote) return <p class="belief-quote">{t.value.asWritten}</p>;
  const isSame = words(bare(quote.excerpt)) === words(bare(memory.content));
  const tool = quote.session_id.split(":", 1)[0] ?? "";
  const turn = `/sessions/${encodeURIComponent(quote.session_id)}?turn=${encodeURIComponent(quote.turn_id)}`;
  return (
    <p class="belief-quote">
      {!isSame && (
        <q>
          <Text>{bare(quote.excerpt)}</Text>
        </q>
      )}{" "}
      <a class="link" href={turn}>
        {t.value.by[quote.speaker]}, <Text>{tool}</Text>
        {quote.time && `, ${day(quote.time)}`}
      </a>
    </p>
  );
}

function Actions({ memory }: { memory: Memory }) {
  const isAsking = useSignal(false);
  const { id, subject, expires_on } = memory;
  const retire = () =>
    attempt(async () => {
      await change("retire", { references: [id], reason: t.value.reason });
      toast(t.value.gone, () => change("unretire", { references: [id] }));
    });
  return (
    <>
      <Button look="quiet" aria-label={t.value.endsOf(subject)} onClick={() => (isAsking.value = true)}>
        {t.value.ends}
      </Button>
      <Button look="quiet" aria-label={t.value.noOf(subject)} onClick={retire}>
        {t.value.no}
      </Button>
      {isAsking.value && <LastDay id={id} before={expires_on} onClose={() => (isAsking.value = false)} />}
    </>
  );
}

function LastDay({ id, before, onClose }: { id: string; before: string | null; onClose: () => void }) {
  const last = useSignal(before ? shifted(before, -1) : "");
  const save = () =>
    attempt(async () => {
      const { value } = last;
      await change("edit", { reference: id, expires_on: value ? shifted(value, 1) : null });
      toast(value ? t.value.ended(day(value)) : t.value.endless, () =>
        change("edit", { reference: id, expires_on: before }),
      );
      onClose();
    });
  return (
    <Dialog title={t.value.lastDay} onClose={onClose}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          save();
        }}
      >
        <TextField
          bare
          type="date"
          label={t.value.lastDay}
          hint={t.value.lastDayHint}
          value={last.value}
          autofocus
          onInput={(event) => (last.value = event.currentTarget.value)}
        />
        <SaveOrCancel isSaving={false} onCancel={onClose} />
      </form>
    </Dialog>
  );
}

function shifted(date: string, days: number): string {
  return new Date(Date.parse(date) + days * DAY_MS).toISOString().slice(0, 10);
}

function words(text: string): string {
  return text
    .replace(/[\s\p{P}]+/gu, " ")
    .trim()
    .toLowerCase();
}
