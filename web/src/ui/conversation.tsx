import { useEffect, useRef } from "preact/hooks";
import { type Loaded, useOperation } from "../api/cache";
import type { Memory, SessionRequest, SessionView, Speaker, StoredTurn } from "../api/types";
import { count, number, texts } from "../i18n/index";
import { Show } from "./states";
import { Origin, Text } from "./text";
import { Time } from "./time";
import "./conversation.css";

const AROUND = 9;
const LONGEST = 600;
const LONGEST_EVIDENCE = 6_000;

const t = texts({
  en: {
    title: "Where it was said",
    open: "Whole conversation",
    none: "No conversation is noted",
    noneNote: "It was written by hand or stored by an agent directly.",
    gone: "What was said is not there any more",
    goneNote: "The document or the conversation was changed since.",
    speakers: { owner: "You", agent: "Agent", tool: "Tool", system: "System" } satisfies Record<Speaker, string>,
    calls: (n: number) => count(n, "tool call", "tool calls"),
    longer: (n: number) => `… ${number(n)} more characters`,
    evidence: "Evidence",
  },
  zh: {
    title: "出处",
    open: "完整会话",
    none: "没有记录会话",
    noneNote: "它是手动写入的,或由代理直接存储。",
    gone: "原话已不存在",
    goneNote: "文档或会话在此之后有改动。",
    speakers: { owner: "你", agent: "代理", tool: "工具", system: "系统" },
    calls: (n: number) => `${number(n)} 次工具调用`,
    longer: (n: number) => `… 还有 ${number(n)} 个字符`,
    evidence: "依据",
  },
});

/** Return the conversation of a memory, or null if none is recorded. */
export function sessionRequest({ source }: Memory): SessionRequest | null {
  const turn = source.turns[0];
  return source.session && turn ? { reference: source.session, around: turn, limit: AROUND } : null;
}

/** Load the turns around those of a memory, if there are any. */
export function useConversation(memory: Memory | undefined): Loaded<SessionView> {
  const request = memory ? sessionRequest(memory) : null;
  return useOperation("session", request ?? {}, { on: [], off: request === null });
}

/** A memory's conversation with its turns marked and in view. */
export function Conversation({ memory, of }: { memory: Memory; of?: string | undefined }) {
  const title = of ? `${t.value.title}: ${of}` : t.value.title;
  const loaded = useConversation(memory);
  const request = sessionRequest(memory);
  return (
    <section class="conversation" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {loaded.data && (
          <span class="faint">
            <Text>{loaded.data.session.session.tool}</Text>
            {loaded.data.session.session.started && (
              <>
                {" · "}
                <Time at={loaded.data.session.session.started} />
              </>
            )}
          </span>
        )}
        {request && (
          <a class="link" href={addressOf(request.reference ?? "", loaded.data, memory)}>
            {t.value.open}
          </a>
        )}
      </header>
      {request && loaded.problem?.code === "not_found" ? (
        <p class="faint conversation-none">
          <b>{t.value.gone}</b> {t.value.goneNote}
        </p>
      ) : request ? (
        <Show of={loaded} lines={8}>
          {(view) => <Turns key={memory.id} turns={view.turns} evidence={memory.source.turns} />}
        </Show>
      ) : (
        <p class="faint conversation-none">
          <b>{t.value.none}</b> {t.value.noneNote}
        </p>
      )}
    </section>
  );
}

/** The whole conversation, at the memory's turn. */
function addressOf(session: string, view: SessionView | undefined, { source }: Memory): string {
  const shown = view?.turns.find(({ turn }) => source.turns.includes(turn.id));
  return `/sessions/${encodeURIComponent(session)}${shown ? `?turn=${shown.seq}` : ""}`;
}

function Turns({ turns, evidence }: { turns: readonly StoredTurn[]; evidence: readonly string[] }) {
  const element = useRef<HTMLOListElement>(null);
  useEffect(() => {
    const list = element.current;
    const shown = list?.querySelector<HTMLElement>(".evidence");
    if (list && shown) list.scrollTop = shown.offsetTop - list.offsetTop - 48;
  }, [turns]);
  return (
    <ol class="conversation-turns" ref={element} tabIndex={0} aria-label={t.value.title}>
      {turns.map(({ turn }) => (
        <Said key={turn.id} turn={turn} isEvidence={evidence.includes(turn.id)} />
      ))}
    </ol>
  );
}

function Said({ turn, isEvidence }: { turn: StoredTurn["turn"]; isEvidence: boolean }) {
  const most = isEvidence ? LONGEST_EVIDENCE : LONGEST;
  const rest = turn.text.length - most;
  return (
    <li class={isEvidence ? "said evidence" : "said"}>
      <p class="said-by">
        <b>{t.value.speakers[turn.speaker]}</b>
        {isEvidence && <span class="said-mark">{t.value.evidence}</span>}
        {turn.time && <Time at={turn.time} />}
      </p>
      {turn.text && (
        <Origin trust={turn.trust}>
          <p class="verbatim">
            <Text>{turn.text.slice(0, most)}</Text>
            {rest > 0 && <span class="said-more">{t.value.longer(rest)}</span>}
          </p>
        </Origin>
      )}
      {turn.tool_calls.length > 0 && <p class="said-calls">{t.value.calls(turn.tool_calls.length)}</p>}
    </li>
  );
}
