import { useSignal } from "@preact/signals";
import { change, useOperation } from "../../api/cache";
import { call } from "../../api/client";
import { me } from "../../api/me";
import type { Check, HostState, WireRequest, WiringPreview } from "../../api/types";
import { common } from "../../i18n/common";
import { Badge, Button } from "../../ui/controls";
import { Dialog } from "../../ui/dialog";
import { Diff } from "../../ui/diff";
import { Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { Said } from "../../ui/text";
import { attempt, toast, toastProblem } from "../../ui/toast";
import { CheckList } from "./checks";
import { t } from "./strings";

/** The planned changes to a host, before consent. */
interface Proposed {
  host: HostState;
  request: WireRequest;
}

/** The known agents: installed, connected, and the changes of connecting one. */
export function Agents() {
  const found = useOperation("hosts", {}, { on: ["operation"] });
  const proposed = useSignal<Proposed | null>(null);
  const row = (host: HostState) => <Agent key={host.name} host={host} onPropose={(one) => (proposed.value = one)} />;
  return (
    <Show of={found} lines={8}>
      {(hosts) => {
        const here = hosts.filter((one) => one.is_here || one.wired.length);
        return (
          <>
            {me.value && !me.value.owner && <p class="faint">{t.value.ownerOnly}</p>}
            <Section title={t.value.agents}>
              {here.length ? <ul>{here.map(row)}</ul> : <p class="faint">{t.value.noAgents}</p>}
            </Section>
            {hosts.some((one) => one.wired.length) && <Tried />}
            <details class="settings-others">
              <summary>{t.value.others}</summary>
              <ul>{hosts.filter((one) => !here.includes(one)).map(row)}</ul>
            </details>
            {proposed.value && <Plan {...proposed.value} onClose={() => (proposed.value = null)} />}
          </>
        );
      }}
    </Show>
  );
}

function Agent({ host, onPropose }: { host: HostState; onPropose: (one: Proposed) => void }) {
  const ofUser = host.wired.some((one) => !one.project);
  const projects = host.wired.filter((one) => one.project);
  const wish = host.wired.length ? host.wired : [{ host: host.name }];
  const isOwner = me.value?.owner ?? false;
  return (
    <li class="settings-agent">
      <div class="settings-words">
        <h3>
          {host.label}
          {ofUser && <Badge tone="good">{t.value.wired}</Badge>}
          {host.is_here && !host.wired.length && <Badge tone="warn">{t.value.notWired}</Badge>}
          {projects.length > 0 && <Badge tone="good">{t.value.inProjects(projects.length)}</Badge>}
        </h3>
        {host.program && <code>{host.program}</code>}
        {projects.map((one) => (
          <code key={one.project}>{one.project}</code>
        ))}
        {!host.by_user && !host.wired.length && <p>{t.value.perProject}</p>}
      </div>
      {isOwner && (host.by_user || host.wired.length > 0) && (
        <div class="buttons">
          <Button
            aria-label={t.value.wireWhat(host.label)}
            onClick={() => onPropose({ host, request: { wishes: wish } })}
          >
            {host.wired.length ? t.value.again : t.value.wire}
          </Button>
          {host.wired.length > 0 && (
            <Button
              look="danger"
              aria-label={t.value.unwireWhat(host.label)}
              onClick={() => onPropose({ host, request: { wishes: wish, uninstall: true } })}
            >
              {t.value.unwire}
            </Button>
          )}
        </div>
      )}
    </li>
  );
}

function Plan({ host, request, onClose }: Proposed & { onClose: () => void }) {
  const preview = useOperation("hosts-preview", request, { on: [] });
  const isBusy = useSignal(false);
  const title = request.uninstall ? t.value.unwireWhat(host.label) : t.value.wireWhat(host.label);
  const isNothing = preview.data && !preview.data.files.length;
  const go = async () => {
    isBusy.value = true;
    try {
      await change("hosts-wire", request);
      onClose();
      toast(request.uninstall ? t.value.didUnwire(host.label) : t.value.didWire(host.label));
    } catch (error) {
      toastProblem(error);
    }
    isBusy.value = false;
  };
  return (
    <Dialog
      title={title}
      place="side"
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{common.value.cancel}</Button>
          <Button
            look={request.uninstall ? "danger" : "primary"}
            disabled={isBusy.value || !preview.data || isNothing}
            onClick={go}
          >
            {request.uninstall ? t.value.unwire : host.wired.length ? t.value.again : t.value.wire}
          </Button>
        </>
      }
    >
      <Show of={preview}>{(plan) => <WhatChanges plan={plan} isNothing={Boolean(isNothing)} />}</Show>
    </Dialog>
  );
}

function WhatChanges({ plan, isNothing }: { plan: WiringPreview; isNothing: boolean }) {
  return (
    <div class="stack settings-plan">
      <p class="faint">{isNothing ? t.value.nothingToDo : t.value.planNote}</p>
      {plan.files.map((file) => (
        <section key={file.path}>
          <h3>
            {t.value.actions[file.action] ?? file.action} <code>{file.path}</code>
          </h3>
          <p class="faint">
            {file.what}
            {file.is_own && ` · ${t.value.own}`}
          </p>
          <details open={!file.is_own && file.diff.length < 40}>
            <summary>{t.value.showDiff}</summary>
            <Diff lines={file.diff} />
          </details>
        </section>
      ))}
      {plan.unchanged > 0 && <p class="faint">{t.value.same(plan.unchanged)}</p>}
      {plan.left_alone.map((one) => (
        <section key={`${one.path} ${one.reason}`}>
          <h3>
            {t.value.left} <code>{one.path}</code>
          </h3>
          <p class="faint">
            <Said>{one.reason}</Said>. {one.hint && <Said>{one.hint}</Said>}
          </p>
        </section>
      ))}
      {plan.notes.length > 0 && (
        <section>
          <h3>{t.value.after}</h3>
          {plan.notes.map((one) => (
            <p key={one}>
              <Said>{one}</Said>
            </p>
          ))}
        </section>
      )}
    </div>
  );
}

/** Test if connected agents can run nacre: on demand, because it starts programs. */
function Tried() {
  const checks = useSignal<Check[] | null>(null);
  const isBusy = useSignal(false);
  const run = () =>
    attempt(async () => {
      isBusy.value = true;
      try {
        checks.value = await call("doctor-hosts", {});
      } finally {
        isBusy.value = false;
      }
    });
  return (
    <Section
      title={t.value.proved}
      actions={
        <Button onClick={run} disabled={isBusy.value}>
          {isBusy.value ? t.value.proving : t.value.prove}
        </Button>
      }
    >
      {checks.value && <CheckList checks={checks.value} />}
    </Section>
  );
}
