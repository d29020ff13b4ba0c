import { change, useOperation } from "../../api/cache";
import type { Lane, MemoryHit, Operations, RecallResult, TurnHit } from "../../api/types";
import { setQuery } from "../../app/router";
import { common } from "../../i18n/common";
import { number } from "../../i18n/index";
import { said } from "../../i18n/said";
import { Badge, Button } from "../../ui/controls";
import { MemoryFacts } from "../../ui/memory-facts";
import { beginning } from "../../ui/memory-row";
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
        <span>{t.value.found(data.hits.length, number(Math.round(data.took_ms)))}</span>
        <Lanes lanes={data.lanes} />
      </p>
      {data.time_words && (
        <p class="ask-told">
          <span>
            {t.value.weighs(data.time_words, [data.since, data.until].map((at) => (at ? day(at) : "…")).join(" – "))}
          </span>
          <Button onClick={() => setQuery({ ignore_time: "1" })}>{t.value.ignoreTime}</Button>
        </p>
      )}
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
  const level = (hit: MemoryHit | TurnHit) => ["sure", "likely", "weak"].indexOf(hit.confidence);
  const levels = new Map(hits.map((hit) => [hit.memory.id, level(hit)]));
  const place = (hit: MemoryHit | TurnHit) =>
    "memory" in hit
      ? 3 * Math.max(level(hit), ...hit.outdated_by.map((id) => levels.get(id) ?? 0)) + (hit.candidate ? 2 : 0)
      : 3 * level(hit) + 1;
  return [...hits, ...turns].sort((left, right) => place(left) - place(right));
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

/** Pin a first or sure answer to its question. */
function pin(question: string, answer: string) {
  void attempt(async () => {
    await change("pin", { question, answer });
    toast(t.value.pinned, () => change("pin", { question, remove: true }));
  });
}

function Hit({ hit, question }: { hit: MemoryHit; question: string | null }) {
  const { memory, score, components, outdated_by, doubt, candidate } = hit;
  return (
    <li class="ask-hit">
      <div class="ask-words">
        <h2>
          <a href={candidate ? "/review" : `/memories/${memory.id}`} dir="auto">
            <Text>{memory.subject}</Text>
          </a>
        </h2>
        <Origin trust={memory.trust} proposed={memory.proposed}>
          <p class="ask-content">
            <Text>{beginning(memory)}</Text>
          </p>
        </Origin>
        <MemoryFacts memory={memory} />
        <Confidence of={hit} />
        {question && <Button onClick={() => pin(question, memory.subject.replace(/…$/, ""))}>{t.value.pin}</Button>}
        {candidate && <Badge tone="warn">{t.value.candidate}</Badge>}
        {outdated_by.length > 0 && <Badge tone="warn">{t.value.outdated}</Badge>}
        {doubt && (
          <p class="ask-doubt">
            {t.value.doubt} <Told>{doubt}</Told>
          </p>
        )}
        <details class="ask-why">
          <summary>{t.value.why}</summary>
          <Parts components={components} score={score} />
        </details>
      </div>
      <Score score={score} />
    </li>
  );
}

function Score({ score }: { score: number }) {
  return (
    <span class="ask-score" title={t.value.score}>
      <span class="sr-only">{t.value.score}: </span>
      {number(score, { minimumFractionDigits: 2, maximumFractionDigits: 2 })}
      <span class="ask-bar" aria-hidden="true">
        <span style={{ transform: `scaleX(${Math.min(1, score)})` }} />
      </span>
    </span>
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
          <Text>{excerpt}</Text>
        </p>
      </Origin>
      {hit.then_by && <p class="ask-content">→ {hit.then}</p>}
      <p class="memory-facts">
        <a class="link" href={`/sessions/${encodeURIComponent(id)}`}>
          {session.tool}
        </a>
        <span>{project ?? common.value.holdsEverywhere}</span>
        {at && <Time at={at} />}
        <Confidence of={hit} />
      </p>
    </li>
  );
}
