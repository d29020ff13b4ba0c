import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { change } from "../../api/cache";
import { call } from "../../api/client";
import { onEvent } from "../../api/events";
import { me } from "../../api/me";
import type { DreamPlan, Operations } from "../../api/types";
import { useShortcuts } from "../../app/keys";
import { titles } from "../../app/pages";
import { number } from "../../i18n/index";
import { Button, Segments } from "../../ui/controls";
import { Page } from "../../ui/layout";
import { ProjectSelect } from "../../ui/project-select";
import { attempt, toast } from "../../ui/toast";
import { Past } from "./past";
import { PlanView } from "./plan";
import { t } from "./strings";
import "./page.css";

type Tier = "1" | "2" | "3";

interface Running {
  what: "plan" | "dream";
  text: string;
  done: number;
  total: number | null;
}

export default function Dreams() {
  const tier = useSignal<Tier>("1");
  const project = useSignal("");
  const running = useSignal<Running | null>(null);
  const plan = useSignal<{ request: Operations["dream-plan"][0]; found: DreamPlan } | null>(null);
  const isOwner = me.value?.owner ?? false;
  const base = { tier: Number(tier.value), ...(project.value ? { project: project.value } : {}) };
  const asks = tier.value !== "1" && isOwner;
  const abort = useProgress(running);

  const run = (writer: boolean) =>
    attempt(async () => {
      if (running.value || !isOwner) return;
      running.value = { what: "plan", text: "", done: 0, total: null };
      const request = { ...base, writer };
      try {
        plan.value = { request, found: await call("dream-plan", request, abort.current.signal) };
      } finally {
        running.value = null;
      }
    });
  const apply = (keys: readonly string[]) =>
    attempt(async () => {
      if (running.value || !plan.value || !keys.length) return;
      running.value = { what: "dream", text: "", done: 0, total: null };
      try {
        const report = await change("dream", { ...plan.value.request, steps: [...keys], first: true });
        const ended = report.plan.steps.reduce((sum, { ends }) => sum + ends.length, 0);
        const operation = report.operation;
        if (operation) toast(t.value.done(ended), () => change("undo", { operation }));
        if (report.left.length) toast(t.value.left(report.left.length));
        plan.value = null;
      } finally {
        running.value = null;
      }
    });
  useEffect(() => {
    plan.value = null;
    if (tier.value === "1" && isOwner) run(false);
  }, [tier.value, project.value, isOwner]);
  useShortcuts(titles.value.dreams, [{ keys: "p", says: t.value.says.plan, run: () => run(asks) }]);

  return (
    <Page title={titles.value.dreams} note={t.value.note}>
      <div class="dream-form">
        <div class="field">
          <span class="field-label" aria-hidden="true">
            {t.value.tier}
          </span>
          <Segments
            label={t.value.tier}
            value={tier.value}
            options={(["1", "2", "3"] as const).map((one) => [one, t.value.tiers[one]] as const)}
            onPick={(picked) => (tier.value = picked)}
          />
        </div>
        <ProjectSelect value={project.value} onPick={(picked) => (project.value = picked)} />
        <p class="dream-tier">{t.value.tierNotes[tier.value]}</p>
      </div>
      {isOwner ? (
        <div class="choices">
          {asks && (
            <Button disabled={running.value !== null} onClick={() => run(true)}>
              {t.value.ask}
            </Button>
          )}
          <Button shortcut={asks ? "" : "p"} disabled={running.value !== null} onClick={() => run(false)}>
            {asks ? t.value.without : plan.value ? t.value.planAgain : t.value.plan}
          </Button>
        </div>
      ) : (
        <p class="dream-owner">{t.value.ownerOnly}</p>
      )}
      {running.value && <Progress running={running.value} onStop={() => abort.current.abort()} />}
      {plan.value && (
        <PlanView
          key={plan.value.found.keys.join()}
          plan={plan.value.found}
          isBusy={running.value !== null}
          onApply={apply}
        />
      )}
      <Past isOwner={isOwner} />
    </Page>
  );
}

/** Follow the daemon's events of the dream. Call the returned function to stop, also when leaving the page. */
function useProgress(running: { value: Running | null }) {
  const abort = useRef(new AbortController());
  useEffect(() => {
    const stop = onEvent((event) => {
      const at = running.value;
      if (!at || event.kind !== "progress" || !String(event.task).startsWith("dream")) return;
      const total = typeof event.total === "number" ? event.total : null;
      const words = [event.stage, event.text].filter((one) => typeof one === "string" && one);
      running.value = { ...at, text: words.join(": "), done: Number(event.done) || 0, total };
    });
    return () => {
      stop();
      abort.current.abort();
    };
  }, []);
  useEffect(() => {
    if (abort.current.signal.aborted) abort.current = new AbortController();
  });
  return abort;
}

function Progress({ running, onStop }: { running: Running; onStop: () => void }) {
  const { what, text, done, total } = running;
  return (
    <div class="dream-progress" role="status">
      <p>
        <b>{what === "plan" ? t.value.planning : t.value.doing}</b> {text}
        {total ? ` ${number(done)} / ${number(total)}` : ""}
      </p>
      <progress aria-label={t.value.planning} {...(total ? { value: done, max: total } : {})} />
      {what === "plan" && (
        <Button look="quiet" onClick={onStop}>
          {t.value.stop}
        </Button>
      )}
    </div>
  );
}
