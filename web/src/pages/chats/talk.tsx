import { useSignal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { change, useOperation } from "../../api/cache";
import type { ResultOf } from "../../api/client";
import type { ChatMessage, ChatSession } from "../../api/types";
import { Badge, Button } from "../../ui/controls";
import { Confirm } from "../../ui/dialog";
import { Icon } from "../../ui/icon";
import { Markdown } from "../../ui/markdown";
import { Show } from "../../ui/states";
import { Origin, Text } from "../../ui/text";
import { day, dayHeading } from "../../ui/time";
import { attempt, toast } from "../../ui/toast";
import { clock } from "../session/figures";
import { t } from "./strings";

const MOST = 300;
/** Within this distance from the end in pixels, the view follows new messages. */
const NEAR = 80;

type Chat = ResultOf<"gateway-session">;

/** A live conversation. */
export function Talk(props: { reference: string; isOwner: boolean; isNamed: boolean }) {
  const { reference, isOwner, isNamed } = props;
  const chat = useOperation("gateway-session", { reference, limit: MOST }, { on: ["chat"], off: !reference });
  return (
    <section class="chats-open" aria-label={chat.data?.session.name}>
      <Show of={chat} lines={10}>
        {(found) => (
          <>
            <Head of={found.session} isOwner={isOwner} />
            <Words of={found} isNamed={isNamed} />
          </>
        )}
      </Show>
    </section>
  );
}

function Head({ of, isOwner }: { of: ChatSession; isOwner: boolean }) {
  const isAsked = useSignal(false);
  const end = () => {
    isAsked.value = false;
    attempt(async () => {
      await change("gateway-end", { reference: of.id });
      toast(t.value.endDone);
    });
  };
  const facts = [
    of.chat.channel,
    of.chat.kind === "group" && t.value.group,
    t.value.began(day(of.created)),
    of.input_tokens + of.output_tokens > 0 && t.value.tokens(of.input_tokens + of.output_tokens),
    dollars(of.cost),
    of.closed && t.value.ended,
  ];
  return (
    <header class="chats-head">
      <a class="chats-back" href="/chats" aria-label={t.value.back}>
        <Icon name="back" />
      </a>
      <h2 class="clip" dir="auto">
        <Text>{of.name || of.key}</Text>
      </h2>
      <p class="chats-facts">
        <Text>{facts.filter(Boolean).join(" · ")}</Text>
      </p>
      <p class="chats-tools">
        {of.indexed > 0 && (
          <a class="button quiet" href={`/sessions/${encodeURIComponent(`nacre-chat:${of.id}`)}`}>
            {t.value.whole}
          </a>
        )}
        {isOwner && !of.closed && <Button onClick={() => (isAsked.value = true)}>{t.value.end}</Button>}
      </p>
      {isAsked.value && (
        <Confirm title={t.value.endTitle} action={t.value.end} onYes={end} onNo={() => (isAsked.value = false)}>
          <p>{t.value.endNote}</p>
        </Confirm>
      )}
    </header>
  );
}

function Words({ of, isNamed }: { of: Chat; isNamed: boolean }) {
  const { box, end, onScroll } = useEnd(`${of.messages.at(-1)?.id} ${of.waiting.length} ${of.is_answering}`, isNamed);
  const all = [...of.messages, ...of.waiting];
  const first = all.find((one) => one.role === "user" && !one.is_owner);
  return (
    <div class="chats-words" ref={box} onScroll={onScroll} tabIndex={0} role="log" aria-label={t.value.said}>
      {all.length === 0 && <p class="chats-facts">{t.value.nothingSaid}</p>}
      {all.map((one, index) => (
        <Message
          key={one.id}
          one={one}
          before={all[index - 1]}
          isWaiting={index >= of.messages.length}
          isFirst={one === first}
        />
      ))}
      {of.is_answering && (
        <p class="chats-answering" role="status">
          <span class="chats-pearl" aria-hidden="true" />
          {t.value.answering}
        </p>
      )}
      <div class="chats-end" ref={end} />
    </div>
  );
}

/** Keep the view at the end of a growing conversation unless the reader scrolled up. `moves` also scrolls the window. */
function useEnd(grown: string, moves: boolean) {
  const box = useRef<HTMLDivElement>(null);
  const end = useRef<HTMLDivElement>(null);
  const isSeen = useRef(true);
  const isAtEnd = useRef(true);
  useEffect(() => {
    const seen = new IntersectionObserver(
      ([entry]) => {
        isSeen.current = entry?.isIntersecting ?? true;
      },
      { rootMargin: "200px" },
    );
    if (end.current) seen.observe(end.current);
    return () => seen.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (isAtEnd.current && box.current) box.current.scrollTop = box.current.scrollHeight;
    if (isSeen.current && moves) end.current?.scrollIntoView({ block: "nearest" });
  }, [grown]);
  const onScroll = ({
    currentTarget: { scrollHeight, scrollTop, clientHeight },
  }: {
    currentTarget: HTMLDivElement;
  }) => {
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR;
  };
  return { box, end, onScroll };
}

function Message(props: { one: ChatMessage; before: ChatMessage | undefined; isWaiting: boolean; isFirst: boolean }) {
  const { one, before, isWaiting } = props;
  const isNewDay = new Date(one.at).toDateString() !== (before ? new Date(before.at).toDateString() : "");
  const goesOn = before?.role === one.role && before.name === one.name && before.is_owner === one.is_owner && !isNewDay;
  const who = one.is_owner ? "owner" : one.role === "user" ? "other" : one.role;
  return (
    <>
      {isNewDay && <h3 class="chats-day">{dayHeading(one.at)}</h3>}
      <article class={`turn chats-said ${who}${goesOn ? " more" : ""}${isWaiting ? " waiting" : ""}`}>
        <p class="turn-by">
          <b class={goesOn ? "sr-only" : undefined} dir="auto">
            <Text>{nameOf(one)}</Text>
          </b>
          <time dateTime={one.at}>{clock(one.at)}</time>
          {isWaiting && <Badge>{t.value.waits}</Badge>}
        </p>
        <Origin trust={who === "other" ? "untrusted" : "trusted"} note={props.isFirst ? t.value.outsideNote : ""}>
          {one.role === "assistant" ? (
            <Markdown>{one.text}</Markdown>
          ) : (
            <p class="verbatim">
              <Text>{one.text}</Text>
            </p>
          )}
        </Origin>
      </article>
    </>
  );
}

function nameOf(one: ChatMessage): string {
  if (one.is_owner) return t.value.you;
  if (one.role === "user") return one.name;
  return one.role === "failure" ? t.value.noAnswer : t.value.agent;
}

/** Return the cost of a conversation as far as it is known. */
export function dollars(cost: number): string {
  return cost ? `$${cost.toFixed(2)}` : "";
}
