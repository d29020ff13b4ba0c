import { useRef } from "preact/hooks";
import { useOperation } from "../../api/cache";
import { me } from "../../api/me";
import type { ChannelState, ChatSession, GatewayState, Undelivered } from "../../api/types";
import { type PageProps, titles } from "../../app/pages";
import { Badge } from "../../ui/controls";
import { Page, Section } from "../../ui/layout";
import { List } from "../../ui/list";
import { Empty, Show } from "../../ui/states";
import { Said, Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { Asking, LetIn } from "./people";
import { t } from "./strings";
import { dollars, Talk } from "./talk";
import "./page.css";

const MOST = 500;
const ON = ["chat"];

export default function Chats({ params }: PageProps) {
  const state = useOperation("gateway-status", {}, { on: ON });
  const chats = useOperation("gateway-sessions", { closed: true, limit: MOST }, { on: ON });
  const isOwner = me.value?.owner ?? false;
  return (
    <Page wide title={titles.value.chats} note={state.data && <How state={state.data} />}>
      {state.data && <Channels of={state.data.channels} />}
      {state.data && <Asking waiting={state.data.waiting} isOwner={isOwner} />}
      <Show of={chats} lines={8}>
        {(found) =>
          found.length ? (
            <Both chats={found} wanted={params.id} isOwner={isOwner} />
          ) : state.data?.channels.length ? (
            <Empty title={t.value.empty}>{t.value.emptyNote}</Empty>
          ) : (
            <Empty title={t.value.noChannel}>{t.value.noChannelNote}</Empty>
          )
        }
      </Show>
      {state.data && <Lost of={state.data.undelivered} />}
      {isOwner && <LetIn />}
    </Page>
  );
}

/** The state of the gateway and its agent. */
function How({ state }: { state: GatewayState }) {
  const answers = state.model === "none" ? t.value.nobody : t.value.answeredBy(state.model);
  const runs = state.running ? t.value.running : state.channels.length ? t.value.stopped : "";
  return <Text>{`${runs} ${answers}`.trim()}</Text>;
}

function Channels({ of }: { of: readonly ChannelState[] }) {
  if (!of.length) return null;
  return (
    <ul class="chats-channels">
      {of.map((one) => (
        <li key={one.name}>
          <b>
            <Text>{one.name}</Text>
          </b>
          {one.problem ? (
            <span class="chats-problem">
              <Said>{one.problem}</Said>
            </span>
          ) : (
            <span>{one.enabled ? t.value.traffic(one.traffic.waiting, one.traffic.sent) : t.value.off}</span>
          )}
          {one.traffic.failed > 0 && <Badge tone="bad">{t.value.lost(one.traffic.failed)}</Badge>}
        </li>
      ))}
    </ul>
  );
}

/** The conversations, and the selected one next to them; on a phone only one of both. */
function Both(props: { chats: readonly ChatSession[]; wanted: string | undefined; isOwner: boolean }) {
  const { chats, wanted, isOwner } = props;
  const box = useRef<HTMLDivElement>(null);
  const shown = wanted ?? chats[0]?.id ?? "";
  const at = chats.findIndex((one) => one.id === shown || one.key === shown);
  return (
    <div class={wanted ? "chats one" : "chats"}>
      <nav class="chats-list" ref={box} aria-label={t.value.list}>
        <List
          label={t.value.list}
          items={chats}
          keyOf={(one) => one.id}
          height={62}
          within={box}
          at={at >= 0 ? at : undefined}
          render={(one) => <Row chat={one} isShown={one.id === chats[at]?.id} />}
        />
      </nav>
      <Talk key={shown} reference={shown} isOwner={isOwner} isNamed={Boolean(wanted)} />
    </div>
  );
}

function Row({ chat, isShown }: { chat: ChatSession; isShown: boolean }) {
  const facts = [chat.chat.channel, chat.chat.kind === "group" && t.value.group, t.value.messages(chat.messages)];
  return (
    <a class="chats-row" href={`/chats/${chat.id}`} aria-current={isShown ? "true" : undefined}>
      <span class="clip chats-name" dir="auto">
        <Text>{chat.name || chat.key}</Text>
      </span>
      <Time at={chat.updated} />
      <span class="chats-facts">
        <Text>{facts.filter(Boolean).join(" · ")}</Text>
      </span>
      <span class="chats-facts">{chat.closed ? t.value.ended : dollars(chat.cost)}</span>
    </a>
  );
}

function Lost({ of }: { of: readonly Undelivered[] }) {
  if (!of.length) return null;
  return (
    <Section title={t.value.undelivered}>
      <ul class="chats-lost">
        {of.map((one, index) => (
          <li key={index}>
            <Text>{one.key}</Text>
            <Badge tone={one.state === "failed" ? "bad" : "warn"}>
              {one.state === "failed" ? t.value.givenUp : t.value.isRetried}
            </Badge>
            <span class="chats-problem">
              <Said>{one.problem}</Said>
            </span>
            <span>{t.value.attempts(one.attempts)}</span>
            <Time at={one.created} />
          </li>
        ))}
      </ul>
    </Section>
  );
}
