import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useOperation } from "../../api/cache";
import type { ErrorMet, SessionView, Summary } from "../../api/types";
import { number } from "../../i18n/index";
import { Badge, Button } from "../../ui/controls";
import { bare } from "../../ui/hidden";
import { KindMark } from "../../ui/kind";
import { Facts } from "../../ui/layout";
import { Show } from "../../ui/states";
import { Said, Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { idOf, nameOf, spent, to } from "./figures";
import { t } from "./strings";

const MOST = 12;
/** Longer sessions are summarised on demand (10,000 turns take some seconds), shorter ones again as they grow. */
const LONG = 2_000;
const BESIDE = "(min-width: 1081px)";

/** The summary of a session; on small screens folded above the conversation. */
export function Aside({ view }: { view: SessionView }) {
  const { session, turns } = view.session;
  const isLong = turns > LONG;
  const isAsked = useSignal(!isLong);
  const report = useOperation(
    "session-summary",
    { reference: idOf(session) },
    { on: isLong ? [] : ["session"], off: !isAsked.value },
  );
  const summary = report.data?.summary;
  return (
    <details class="session-about" open={matchMedia(BESIDE).matches}>
      <summary>{t.value.about}</summary>
      <aside class="aside" tabIndex={0} aria-label={t.value.about}>
        <Learned view={view} />
        <Injected view={view} />
        {summary && <Came view={view} summary={summary} />}
        {!isAsked.value && <Button onClick={() => (isAsked.value = true)}>{t.value.sumUp}</Button>}
        {isAsked.value && !summary && <Show of={report}>{() => null}</Show>}
        <About view={view} />
      </aside>
    </details>
  );
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section>
      <h2>{title}</h2>
      {children}
    </section>
  );
}

/** A part of a list, with the number of remaining items. */
function Some<T>({ of, children }: { of: readonly T[]; children: (one: T) => ComponentChildren }) {
  return (
    <ul class="session-lines">
      {of.slice(0, MOST).map((one, index) => (
        <li key={index}>{children(one)}</li>
      ))}
      {of.length > MOST && <li class="faint">{t.value.more(of.length - MOST)}</li>}
    </ul>
  );
}

function Learned({ view }: { view: SessionView }) {
  const { session } = view.session;
  return (
    <Part title={t.value.memories(view.memories.length)}>
      {!view.memories.length && <p class="faint">{t.value.nothingLearned}</p>}
      <Some of={view.memories}>
        {(memory) => (
          <span class="session-memory">
            <KindMark kind={memory.kind} />
            <span>
              <a class="link" href={`/memories/${memory.id}`} dir="auto">
                <Text>{bare(memory.subject)}</Text>
              </a>
              {memory.source.turns?.[0] && (
                <a class="session-jump" href={to(session, memory.source.turns[0])}>
                  {t.value.itsTurn}
                  <span class="sr-only">: {bare(memory.subject)}</span>
                </a>
              )}
            </span>
          </span>
        )}
      </Some>
    </Part>
  );
}

/** The agent's view: memories in its context, and what it did with them. */
function Injected({ view: { injected } }: { view: SessionView }) {
  if (!injected.length) return null;
  return (
    <Part title={t.value.injected(injected.length)}>
      <Some of={injected}>
        {([memory, outcome]) => (
          <span class="session-memory">
            <KindMark kind={memory.kind} />
            <span>
              <a class="link" href={`/memories/${memory.id}`} dir="auto">
                <Text>{bare(memory.subject)}</Text>
              </a>{" "}
              <span class="faint">{t.value.outcomes[outcome]}</span>
            </span>
          </span>
        )}
      </Some>
    </Part>
  );
}

function Came({ view, summary }: { view: SessionView; summary: Summary }) {
  const { session } = view.session;
  const { outcome } = summary;
  const edited = summary.files.filter((one) => one.edits);
  const made = [...summary.commits, ...summary.pull_requests];
  return (
    <>
      {summary.topics.length > 0 && (
        <Part title={t.value.asked}>
          <Some of={summary.topics}>{(topic) => <Turn href={to(session, topic.turn)} text={topic.text} />}</Some>
        </Part>
      )}
      <Part title={t.value.ended}>
        <p class="session-ended">
          <Badge tone={TONES[outcome.ending]}>{t.value.endings[outcome.ending]}</Badge>{" "}
          <span class="faint">
            <Said>{outcome.reason}</Said>
          </span>
        </p>
        {outcome.words && outcome.turn && <Turn href={to(session, outcome.turn)} text={outcome.words} />}
      </Part>
      {summary.open_ends.length > 0 && (
        <Part title={t.value.left}>
          <Some of={summary.open_ends}>{(end) => <Turn href={to(session, end.turn)} text={end.text} />}</Some>
        </Part>
      )}
      {summary.errors.length > 0 && (
        <Part title={t.value.errors}>
          <Some of={summary.errors}>{(error) => <Met error={error} />}</Some>
        </Part>
      )}
      {edited.length > 0 && (
        <Part title={t.value.files}>
          <Some of={edited}>
            {(file) => (
              <span class="session-file">
                <code class="session-path" title={file.path}>
                  <Text>{file.path}</Text>
                </code>
                <span class="faint">×{file.edits}</span>
              </span>
            )}
          </Some>
        </Part>
      )}
      {made.length > 0 && (
        <Part title={t.value.made}>
          <Some of={made}>{(one) => <Text>{one}</Text>}</Some>
        </Part>
      )}
    </>
  );
}

const TONES = { done: "good", failed: "bad", stopped: "warn", unknown: "neutral" } as const;

/** Words linked to their turn. */
function Turn({ href, text }: { href: string; text: string }) {
  return (
    <a class="session-quote" href={href} dir="auto">
      <Text>{bare(text)}</Text>
    </a>
  );
}

function Met({ error }: { error: ErrorMet }) {
  return (
    <span class="session-error">
      <span class="session-clamped">
        <Text>{error.text}</Text>
      </span>
      <span>
        <Badge tone={error.mended ? "good" : "bad"}>{error.mended ? t.value.mended : t.value.notMended}</Badge>{" "}
        <span class="faint">
          <Text>{error.call}</Text>
        </span>
      </span>
    </span>
  );
}

function About({ view }: { view: SessionView }) {
  const { session, children, parent } = view;
  const { cwd, branch, model, tokens, started, tool, tool_version: version } = session.session;
  return (
    <>
      {children.length > 0 && (
        <Part title={t.value.sentOut}>
          <Some of={children}>
            {(line) => <Turn href={to(line.session.session)} text={nameOf(line.session.session, line.opening)} />}
          </Some>
        </Part>
      )}
      <Part title={t.value.facts}>
        <Facts
          rows={[
            [t.value.sentBy, parent && <Turn href={to(parent.session)} text={nameOf(parent.session, null)} />],
            [t.value.tool, <Text key="tool">{[tool, version].filter(Boolean).join(" ")}</Text>],
            [t.value.model, model && <Text>{model}</Text>],
            [t.value.folder, cwd && <Text>{cwd}</Text>],
            [t.value.branch, branch && <Text>{branch}</Text>],
            [t.value.began, started && <Time at={started} />],
            [t.value.last, session.ended && <Time at={session.ended} />],
            [t.value.work, spent(view.active)],
            [
              t.value.tokens,
              tokens && t.value.tokenCounts(number(tokens.input), number(tokens.cached), number(tokens.output)),
            ],
            [t.value.file, session.file && <Text>{session.file}</Text>],
            [t.value.id, <code key="id">{session.session.native_id.slice(0, 13)}</code>],
          ]}
        />
      </Part>
    </>
  );
}
