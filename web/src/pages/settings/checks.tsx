import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { change, useOperation } from "../../api/cache";
import { call } from "../../api/client";
import { type NacreEvent, onEvent } from "../../api/events";
import { me } from "../../api/me";
import type { Check } from "../../api/types";
import { useShortcuts } from "../../app/keys";
import { Button } from "../../ui/controls";
import { Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { Said } from "../../ui/text";
import { attempt, toast } from "../../ui/toast";
import { t } from "./strings";

/** The checks of the installation, and the full verification on demand. */
export function Checks() {
  const found = useOperation("doctor", {}, { on: ["operation"] });
  const proof = useSignal<Check[] | null>(null);
  const isProving = useSignal(false);
  useShortcuts(t.value.views.checks, [{ keys: "r", says: t.value.run, run: found.refresh }]);
  const mend = () =>
    attempt(async () => {
      await change("doctor", { repair: true });
      toast(t.value.mended);
    });
  const prove = () =>
    attempt(async () => {
      isProving.value = true;
      try {
        proof.value = await call("doctor-deep", {});
      } finally {
        isProving.value = false;
      }
    });
  return (
    <>
      <Section
        title={t.value.checks}
        actions={
          <>
            {me.value?.owner && found.data?.some((one) => one.state !== "ok") && (
              <Button onClick={mend}>{t.value.mend}</Button>
            )}
            <Button shortcut="r" onClick={found.refresh} disabled={found.loading}>
              {t.value.run}
            </Button>
          </>
        }
      >
        <Show of={found} lines={8}>
          {(checks) => <CheckList checks={checks} />}
        </Show>
      </Section>
      <Section
        title={t.value.deepTitle}
        note={t.value.deepNote}
        actions={
          <Button onClick={prove} disabled={isProving.value}>
            {isProving.value ? t.value.running : t.value.deep}
          </Button>
        }
      >
        {isProving.value && <Progress />}
        {proof.value && <CheckList checks={proof.value} />}
      </Section>
    </>
  );
}

/** Checks with their remedies, problems first. */
export function CheckList({ checks }: { checks: readonly Check[] }) {
  const order = ["failure", "warning", "ok"];
  const sorted = checks.toSorted((one, other) => order.indexOf(one.state) - order.indexOf(other.state));
  const open = checks.filter((one) => one.state !== "ok").length;
  return (
    <>
      <p class={open ? "settings-sum open" : "settings-sum"} role="status">
        {open ? t.value.toDo(open) : t.value.good}
      </p>
      <ul>
        {sorted.map((one) => (
          <li key={`${one.name} ${one.detail}`} class={`settings-check ${one.state}`}>
            <span class="settings-mark" role="img" aria-label={t.value.states[one.state] ?? one.state} />
            <b>{one.name}</b>
            <span>
              <Said>{one.detail}</Said>
              {one.hint && (
                <span class="settings-remedy">
                  <Said>{one.hint}</Said>
                </span>
              )}
            </span>
          </li>
        ))}
      </ul>
    </>
  );
}

function Progress() {
  const now = useSignal<NacreEvent | null>(null);
  useEffect(
    () =>
      onEvent((event) => {
        if (event.kind === "progress" && event.task === "doctor-deep") now.value = event;
      }),
    [],
  );
  const { done, total, stage } = (now.value ?? {}) as { done?: number; total?: number | null; stage?: string };
  return (
    <div class="settings-progress" role="status">
      <progress {...(total ? { max: total, value: done } : {})} aria-label={t.value.running} />
      <span>
        {stage ?? ""} {done ? `${done}${total ? ` / ${total}` : ""}` : ""}
      </span>
    </div>
  );
}
