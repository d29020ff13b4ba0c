import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { change, useOperation } from "../../api/cache";
import type { Pairing } from "../../api/types";
import { Button } from "../../ui/controls";
import { Confirm } from "../../ui/dialog";
import { plain } from "../../ui/hidden";
import { Section } from "../../ui/layout";
import { Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { attempt, toast } from "../../ui/toast";
import { t } from "./strings";

const idOf = ({ channel, sender }: Pairing) => `${channel}:${sender}`;

function decide(one: Pairing, how: keyof typeof t.value.done): void {
  attempt(async () => {
    const who = idOf(one);
    if (how === "letIn" || how === "isMe") await change("gateway-pair", { who, me: how === "isMe" });
    else await change("gateway-unpair", { who });
    toast(t.value.done[how]);
  });
}

/** Strangers who wrote to the agent and wait for approval. */
export function Asking({ waiting, isOwner }: { waiting: readonly Pairing[]; isOwner: boolean }) {
  const asked = useSignal<Pairing | null>(null);
  if (!waiting.length) return null;
  return (
    <Section title={t.value.asks} note={!isOwner && t.value.ownerOnly}>
      <ul class="chats-people">
        {waiting.map((one) => (
          <Person key={idOf(one)} one={one} at={one.asked} code={one.code}>
            {isOwner && (
              <>
                <Button onClick={() => decide(one, "letIn")}>{t.value.letIn}</Button>
                <Button onClick={() => (asked.value = one)}>{t.value.isMe}</Button>
                <Button look="quiet" onClick={() => decide(one, "refuse")}>
                  {t.value.refuse}
                </Button>
              </>
            )}
          </Person>
        ))}
      </ul>
      {asked.value && <IsMe one={asked.value} onDone={() => (asked.value = null)} />}
    </Section>
  );
}

function IsMe({ one, onDone }: { one: Pairing; onDone: () => void }) {
  return (
    <Confirm
      title={t.value.isMeTitle(plain(one.name || idOf(one)))}
      action={t.value.isMeYes}
      onNo={onDone}
      onYes={() => {
        decide(one, "isMe");
        onDone();
      }}
    >
      <p>{t.value.isMeNote}</p>
      <p class="chats-code">{one.code}</p>
    </Confirm>
  );
}

/** The approved senders, folded; the owner can remove them. */
export function LetIn() {
  const found = useOperation("gateway-pairings", {}, { on: ["chat"] }).data ?? [];
  const asked = useSignal<Pairing | null>(null);
  const inside = found.filter((one) => one.approved);
  if (!inside.length) return null;
  return (
    <details class="chats-inside">
      <summary>{t.value.mayWrite(inside.length)}</summary>
      <ul class="chats-people">
        {inside.map((one) => (
          <Person key={idOf(one)} one={one} at={one.approved ?? one.asked}>
            <Button look="quiet" onClick={() => (asked.value = one)}>
              {t.value.remove}
            </Button>
          </Person>
        ))}
      </ul>
      {asked.value && <Remove one={asked.value} onDone={() => (asked.value = null)} />}
    </details>
  );
}

function Remove({ one, onDone }: { one: Pairing; onDone: () => void }) {
  return (
    <Confirm
      title={t.value.removeTitle(plain(one.name || idOf(one)))}
      action={t.value.remove}
      onNo={onDone}
      onYes={() => {
        decide(one, "remove");
        onDone();
      }}
    >
      <p>{t.value.removeNote}</p>
    </Confirm>
  );
}

function Person(props: { one: Pairing; at: string; code?: string; children: ComponentChildren }) {
  const { one, at, code } = props;
  return (
    <li>
      <p class="chats-who">
        <b dir="auto">
          <Text>{one.name || one.sender}</Text>
        </b>
        <code>
          <Text>{idOf(one)}</Text>
        </code>
        <Time at={at} />
      </p>
      {code && (
        <p class="chats-code">
          <span class="sr-only">{t.value.code}: </span>
          {code}
        </p>
      )}
      <p class="buttons">{props.children}</p>
    </li>
  );
}
