import { useSignal } from "@preact/signals";
import { invalidate, useOperation } from "../../api/cache";
import { asProblem, call } from "../../api/client";
import type { ProjectLine, ProjectMergePlan, ProjectMoved } from "../../api/types";
import { go } from "../../app/router";
import { common } from "../../i18n/common";
import { said } from "../../i18n/said";
import { Button, Select, TextField } from "../../ui/controls";
import { Dialog } from "../../ui/dialog";
import { Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { attempt, toast } from "../../ui/toast";
import { t } from "./strings";

interface Props {
  project: ProjectLine;
  onClose: () => void;
}

/** Rename a project, after showing the effects. */
export function Rename({ project, onClose }: Props) {
  const name = useSignal("");
  const problem = useSignal("");
  const rename = async () => {
    try {
      moved(await call("project-rename", { project: project.slug, name: name.peek().trim() }), t.value.renamed);
      onClose();
    } catch (error) {
      problem.value = said(asProblem(error).message);
    }
  };
  return (
    <Dialog
      title={t.value.renameOf(project.slug)}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{common.value.cancel}</Button>
          <Button look="primary" disabled={!name.value.trim()} onClick={rename}>
            {t.value.rename}
          </Button>
        </>
      }
    >
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (name.peek().trim()) rename();
        }}
      >
        <TextField
          label={t.value.newName}
          autofocus
          error={problem.value || undefined}
          onInput={(event) => (name.value = event.currentTarget.value)}
        />
        <p class="faint">{t.value.renamePlan(project.memories, project.sessions, project.slug)}</p>
      </form>
    </Dialog>
  );
}

/** Merge it into another project, after showing the plan. */
export function Merge({ project, onClose }: Props) {
  const into = useSignal("");
  const isMerging = useSignal(false);
  const known = useOperation("place", {}, { on: [] }).data?.known ?? [];
  const asked = { project: project.slug, into: into.value };
  const plan = useOperation("project-merge-plan", asked, { off: !into.value || isMerging.value, on: [] });
  const merge = async () => {
    isMerging.value = true;
    await attempt(async () => {
      moved(await call("project-merge", asked), t.value.merged);
      onClose();
    });
    isMerging.value = false;
  };
  return (
    <Dialog
      title={t.value.mergeOf(project.slug)}
      onClose={onClose}
      actions={
        <>
          <Button onClick={onClose}>{common.value.cancel}</Button>
          <Button look="danger" disabled={!into.value || !plan.data || isMerging.value} onClick={merge}>
            {t.value.merge}
          </Button>
        </>
      }
    >
      <div class="stack">
        <Select
          label={t.value.into}
          value={into.value}
          options={[
            ["", t.value.pick],
            ...known.filter((one) => one !== project.slug).map((one) => [one, one] as const),
          ]}
          onPick={(picked) => (into.value = picked)}
        />
        {into.value && <Show of={plan}>{(told) => <Plan plan={told} />}</Show>}
      </div>
    </Dialog>
  );
}

function Plan({ plan }: { plan: ProjectMergePlan }) {
  return (
    <div class="stack project-plan">
      <p>{t.value.mergePlan(plan.memories, plan.sessions, plan.into)}</p>
      <ul>
        {plan.takes.map(([what, value]) => (
          <li key={`${what} ${value}`}>
            <span class="faint">{t.value.takes[what] ?? what}</span> <Text>{value}</Text>
          </li>
        ))}
      </ul>
      {plan.words && (
        <>
          <p>{t.value.appended}</p>
          <blockquote dir="auto">
            <Text>{plan.words}</Text>
          </blockquote>
        </>
      )}
    </div>
  );
}

/** Show it under its new name; *Undo* shows it under the former one. */
function moved({ project, into, operation }: ProjectMoved, said: (from: string, to: string) => string): void {
  const show = (name: string) => {
    go(`/projects/${encodeURIComponent(name)}`, { replace: true });
    setTimeout(invalidate); // after the page of the former name stops its requests
  };
  show(into);
  toast(said(project, into), async () => {
    await call("undo", { operation });
    show(project);
  });
}
