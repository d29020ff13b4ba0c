import { useSignal } from "@preact/signals";
import type { Memory, ToolCall, Turn } from "../../api/types";
import { Badge, Button } from "../../ui/controls";
import { bare } from "../../ui/hidden";
import { Markdown } from "../../ui/markdown";
import { Origin, Text } from "../../ui/text";
import { clock, isFailed, tally } from "./figures";
import { t } from "./strings";

const FOLDED = 3_000;
const SHOWN = 2_000;
const META = 2;
export const SIDECHAIN = 8;
const MARKS = [
  [1, "injected"],
  [4, "summary"],
  [SIDECHAIN, "sidechain"],
  [16, "command"],
  [32, "interrupted"],
] as const;

interface Props {
  turn: Turn;
  /** The memories it shows. */
  learned: readonly Memory[];
  /** Unfolded parts by turn, because rows are removed while scrolling. */
  unfolded: Set<string>;
  isNamed: boolean;
  /** True if the previous turn is also of a sub-agent. */
  isWithin: boolean;
}

/** One turn with its speaker. */
export function Said({ turn, learned, unfolded, isNamed, isWithin }: Props) {
  const flags: number = turn.flags;
  const classes = ["turn session-turn", turn.speaker, flags & SIDECHAIN ? "sidechain" : "", isNamed ? "named" : ""];
  const marks = MARKS.filter(([bit]) => flags & bit && !(bit === SIDECHAIN && isWithin)).map(([, name]) => name);
  return (
    <article class={classes.filter(Boolean).join(" ")}>
      <p class="turn-by">
        <b>
          <Text>{turn.author ?? t.value.speakers[turn.speaker]}</Text>
        </b>
        <a class="session-place" href={`?turn=${encodeURIComponent(turn.id)}`} title={t.value.place}>
          {turn.time ? <time dateTime={turn.time}>{clock(turn.time)}</time> : "#"}
        </a>
      </p>
      <div class="session-words">
        <p class="session-marks">
          {marks.map((name) => (
            <Badge key={name}>{t.value.marks[name]}</Badge>
          ))}
        </p>
        {turn.text && ((flags & META) > 0 ? <Noise turn={turn} /> : <Words turn={turn} unfolded={unfolded} />)}
        {turn.tool_calls.length > 0 && <Calls turn={turn} unfolded={unfolded} />}
        {learned.map((memory) => (
          <a key={memory.id} class="session-learned" href={`/memories/${memory.id}`} dir="auto">
            <span class="session-pearl" aria-hidden="true" />
            <span class="sr-only">{t.value.learned}: </span>
            <Text>{bare(memory.subject)}</Text>
          </a>
        ))}
      </div>
    </article>
  );
}

function Words({ turn, unfolded }: { turn: Turn; unfolded: Set<string> }) {
  const isWhole = useSignal(turn.text.length <= FOLDED || unfolded.has(`text ${turn.id}`));
  const text = isWhole.value ? turn.text : `${turn.text.slice(0, SHOWN)} …`;
  return (
    <>
      <Origin trust={turn.trust}>
        {turn.speaker === "agent" ? (
          <Markdown>{text}</Markdown>
        ) : (
          <p class="verbatim">
            <Text>{text}</Text>
          </p>
        )}
      </Origin>
      {!isWhole.value && (
        <Button
          look="quiet"
          onClick={() => {
            unfolded.add(`text ${turn.id}`);
            isWhole.value = true;
          }}
        >
          {t.value.whole(turn.text.length)}
        </Button>
      )}
    </>
  );
}

/** Output of the tool itself, folded. */
function Noise({ turn }: { turn: Turn }) {
  return (
    <details class="session-calls">
      <summary class="clip session-fold">
        <b class="session-tool">{t.value.noise}</b> <Text>{turn.text.slice(0, 120)}</Text>
      </summary>
      <p class="verbatim session-unfolded">
        <Text>{turn.text}</Text>
      </p>
    </details>
  );
}

function Calls({ turn, unfolded }: { turn: Turn; unfolded: Set<string> }) {
  const calls = turn.tool_calls;
  const key = `calls ${turn.id}`;
  const failed = calls.filter(isFailed).length;
  const [only] = calls.length === 1 ? calls : [];
  return (
    <details
      class="session-calls"
      open={unfolded.has(key)}
      onToggle={(event) => (event.currentTarget.open ? unfolded.add(key) : unfolded.delete(key))}
    >
      <summary class="clip session-fold">
        <b class="session-tool">
          <Text>{tally(calls)}</Text>
        </b>{" "}
        {only && (
          <code>
            <Text>{only.input.slice(0, 160)}</Text>
          </code>
        )}
        {failed > 0 && <Badge tone="bad">{t.value.failed(failed, calls.length)}</Badge>}
      </summary>
      <ul class="session-unfolded">
        {calls.map((call, index) => (
          <li key={index}>
            <Call call={call} />
          </li>
        ))}
      </ul>
    </details>
  );
}

function Call({ call }: { call: ToolCall }) {
  return (
    <>
      <p class="session-call">
        <b class="session-tool">
          <Text>{call.name}</Text>
        </b>
        <code class="session-input">
          <Text>{call.input}</Text>
        </code>
        <span class={isFailed(call) ? "session-failed" : ""}>
          <Text>{call.outcome ?? t.value.unknown}</Text>
        </span>
      </p>
      {call.error && (
        <pre class="session-trace" tabIndex={0}>
          <Text>{call.error}</Text>
        </pre>
      )}
      {call.made.length > 0 && (
        <p>
          <Text>{call.made.join(", ")}</Text>
        </p>
      )}
    </>
  );
}
