import { change, useOperation } from "../../api/cache";
import type { Lane, MemoryHit, Operations, RecallResult, TurnHit } from "../../api/types";
import { setQuery } from "../../app/router";
import { common } from "../../i18n/common";
import { number } from "../../i18n/index";
import { said } from "../../i18n/said";
import { Badge, Button, Chip } from "../../ui/controls";
import { bare } from "../../ui/hidden";
import { MemoryFacts } from "../../ui/memory-facts";
import { lead } from "../../ui/memory-row";
import { Empty, Failure, Skeleton } from "../../ui/states";
import { Origin, Text, Said as Told } from "../../ui/text";
import { day, Time } from "../../ui/time";
import { attempt, toast } from "../../ui/toast";
import { t } from "./strings";

/** Recall's answer with its reasons. */
export function Results({ request }: { request: Operations["recall"][0] }) {
  const { data, problem, refresh, loading } = useOperation("recall", request, { keep: true, on: ["memory", "doubt"] });
  if (problem && (!data || !loading)) return <Failure problem={problem} retry={refresh} />;
  if (!data) return <Skeleton lines={8} />;
  return (
    <div aria-busy={loading}>
      <p class="ask-told" role="status">
        <span>{t.value.found(data.hits.length, data.turns.length)}</span>
        {data.time_words && (
          <Chip onRemove={() => setQuery({ ignore_time: "1" })}>
            {t.value.weighs(data.time_words, [data.since, data.until].map((at) => (at ? day(at) : "…")).join(" – "))}
          </Chip>
        )}
        <Lanes lanes={data.lanes} />
      </p>
      {data.hits.length + data.turns.length > 0 ? (
        <ol class="ask-hits">
          {ranked(data).map((hit, rank) =>
            "memory" in hit ? (
              <Hit key={hit.memory.id} hit={hit} question={rank && hit.confidence !== "sure" ? null : data.query} />
            ) : (
              <Said key={hit.turn.id} hit={hit} />
            ),
          )}
        </ol>
      ) : (
        <Empty title={t.value.none}>{t.value.noneNote}</Empty>
      )}
    </div>
  );
}

/** Memories, turns and candidates in one list, as RecallResult.ranked orders them. */
function ranked({ hits, turns }: RecallResult): (MemoryHit | TurnHit)[] {
  const isWeak = (hit: MemoryHit | TurnHit) => Number(hit.confidence === "weak");
  return [...hits, ...turns].sort((left, right) => isWeak(left) - isWeak(right) || left.rank - right.rank);
}

function Lanes({ lanes }: { lanes: readonly Lane[] }) {
  return (
    <span class="ask-lanes">
      <span class="sr-only">{t.value.lanes}: </span>
      {lanes.map((lane) => (
        <span key={lane.name} class={lane.state} title={lane.note ? said(lane.note) : undefined}>
          {lane.name}: {t.value.laneStates[lane.state]}
          {lane.note && lane.state !== "ran" && ` (${said(lane.note)})`}
        </span>
      ))}
    </span>
  );
}

function Confidence({ of }: { of: MemoryHit | TurnHit }) {
  return <Badge>{t.value.confidence[of.confidence]}</Badge>;
}

function Doubt({ of: { doubt } }: { of: MemoryHit | TurnHit }) {
  return doubt ? (
    <p class="ask-doubt">
      {t.value.doubt} <Told>{doubt}</Told>
    </p>
  ) : null;
}

/** Pin a first or sure answer to its question. */
function pin(question: string, answer: string) {
  void attempt(async () => {
    await change("pin", { question, answer });
    toast(t.value.pinned, () => change("pin", { question, remove: true }));
  });
}

function Hit({ hit, question }: { hit: MemoryHit; question: string | null }) {
  const { memory, score, components, outdated_by, candidate } = hit;
  const [sentence, rest] = lead(memory);
  return (
    <li class="ask-hit">
      <h2>
        <a href={candidate ? `/review?item=${memory.id}` : `/memories/${memory.id}`} dir="auto">
          <Text>{sentence}</Text>
        </a>
      </h2>
      <Origin trust={memory.trust} proposed={memory.proposed}>
        {rest && (
          <p class="ask-content">
            <Text>{rest}</Text>
          </p>
        )}
      </Origin>
      <div class="ask-facts">
        <MemoryFacts memory={memory} />
        <Confidence of={hit} />
        {candidate && <Badge tone="warn">{t.value.candidate}</Badge>}
        {outdated_by.length > 0 && <Badge tone="warn">{t.value.outdated}</Badge>}
        {question && !candidate && (
          <Button look="quiet" onClick={() => pin(question, memory.subject.replace(/…$/, ""))}>
            {t.value.pin}
          </Button>
        )}
      </div>
      <Doubt of={hit} />
      <details class="ask-why">
        <summary>{t.value.why}</summary>
        <Parts components={components} score={score} />
      </details>
    </li>
  );
}

function Parts({ components, score }: { components: Record<string, number>; score: number }) {
  const digits = { minimumFractionDigits: 3, maximumFractionDigits: 3 };
  const told = Object.entries(components);
  return (
    <table>
      <caption>{components.relevance === undefined ? t.value.score : t.value.product}</caption>
      <tbody>
        <tr>
          <th scope="row">score</th>
          <td>{number(score, digits)}</td>
          <td>{t.value.score}</td>
        </tr>
        {told.map(([name, value]) => (
          <tr key={name} class={name.startsWith("x_") || name === "relevance" ? "ask-factor" : undefined}>
            <th scope="row">{name.startsWith("x_") ? `× ${name.slice(2)}` : name}</th>
            <td>{number(value, digits)}</td>
            <td>{t.value.parts[name] ?? ""}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Said({ hit }: { hit: TurnHit }) {
  const { session, turn, excerpt, project } = hit;
  const at = turn.time ?? session.started;
  const id = `${session.tool}:${session.native_id}`;
  return (
    <li class="ask-said">
      <Origin trust={turn.trust}>
        <p class="ask-content">
          <Text>{bare(excerpt)}</Text>
        </p>
      </Origin>
      {hit.quotes.map((quote) => (
        <p key={quote.seq} class="ask-content">
          → {quote.excerpt}
        </p>
      ))}
      <p class="memory-facts">
        <a class="link" href={`/sessions/${encodeURIComponent(id)}`}>
          {session.tool}
        </a>
        <span>{project ?? common.value.holdsEverywhere}</span>
        {at && <Time at={at} />}
        <Confidence of={hit} />
      </p>
      <Doubt of={hit} />
    </li>
  );
}
