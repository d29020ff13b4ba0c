import { type Loaded, useOperation } from "../../api/cache";
import type { Filter, Mode, TurnHit } from "../../api/types";
import { titles } from "../../app/pages";
import { common } from "../../i18n/common";
import { Badge } from "../../ui/controls";
import { useDelayed } from "../../ui/delayed";
import { bare } from "../../ui/hidden";
import { List } from "../../ui/list";
import { Empty, Failure, Skeleton } from "../../ui/states";
import { Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { to } from "../session/figures";
import { type Filters, range } from "./filters";
import { t } from "./strings";

const MOST = 100;
const LONGEST_LOOK_S = 5;

/** The matching turns, the best first; for a regular expression, the latest first. */
export function Found({ at }: { at: Filters }) {
  const text = useDelayed(at.words.trim());
  const filter: Filter = {
    projects: at.project ? [at.project] : [],
    strict: true,
    tools: at.tool ? [at.tool] : [],
    ...range(at),
  };
  const where = { filter, limit: MOST, aspect: at.scope || "all", role: at.role || "all" };
  const isPattern = at.how === "pattern";
  const quiet = { keep: true, on: ["session"] };
  const matched = useOperation(
    "match-sessions",
    { expression: text, ...where, seconds: LONGEST_LOOK_S },
    { ...quiet, off: !isPattern },
  );
  const searched = useOperation(
    "search-sessions",
    { text, ...where, mode: (at.how || "hybrid") as Mode, fuzzy: at.how === "", update: false },
    { ...quiet, off: isPattern },
  );
  const found: Loaded<{ turns: readonly TurnHit[] }> = isPattern ? matched : searched;
  const unread = isPattern && (matched.data?.unread || Boolean(matched.data?.given_up));
  if (found.problem) return <Failure problem={found.problem} retry={found.refresh} />;
  if (!found.data) return <Skeleton lines={12} />;
  return <Hits hits={found.data.turns} words={isPattern ? "" : text} note={unread ? t.value.unread : ""} />;
}

function Hits({ hits, words, note }: { hits: readonly TurnHit[]; words: string; note: string }) {
  if (!hits.length) return <Empty title={t.value.noTurn}>{note || t.value.noTurnNote}</Empty>;
  return (
    <>
      <p class="sessions-found" role="status">
        {hits.length >= MOST ? t.value.first(hits.length) : t.value.turns(hits.length)} {note}
      </p>
      <List
        label={titles.value.sessions}
        items={hits}
        keyOf={(hit) => `${to(hit.session)} ${hit.turn.id}`}
        height={72}
        render={(hit) => <Hit hit={hit} words={words} />}
      />
    </>
  );
}

function Hit({ hit, words }: { hit: TurnHit; words: string }) {
  const { turn, session } = hit;
  return (
    <a class="row sessions-hit" href={to(session, turn.id)}>
      <span class="sessions-excerpt" dir="auto">
        <Marked text={bare(hit.excerpt || turn.text)} words={words} />
      </span>
      <span class="faint sessions-facts">
        {turn.trust === "untrusted" && <Badge tone="warn">{common.value.untrusted}</Badge>}
        <b>{t.value.speakers[turn.speaker]}</b>
        <Text>{[session.title && bare(session.title), hit.project, session.tool].filter(Boolean).join(" · ")}</Text>
        {turn.time && <Time at={turn.time} />}
      </span>
    </a>
  );
}

/** A text with the search words marked. */
function Marked({ text, words }: { text: string; words: string }) {
  const wanted = words.match(/[\p{L}\p{N}_]{2,}/gu)?.map((one) => one.toLowerCase()) ?? [];
  if (!wanted.length) return <Text>{text}</Text>;
  const parts = text.split(new RegExp(`(${wanted.join("|")})`, "giu"));
  return (
    <>
      {parts.map((part, index) =>
        index % 2 ? (
          <mark key={index}>
            <Text>{part}</Text>
          </mark>
        ) : (
          <Text key={index}>{part}</Text>
        ),
      )}
    </>
  );
}
