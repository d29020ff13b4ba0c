import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { change, useOperation } from "../../api/cache";
import { me } from "../../api/me";
import type { ProjectDetail } from "../../api/types";
import { titles } from "../../app/pages";
import { Select } from "../../ui/controls";
import { Text } from "../../ui/text";
import { attempt, toast } from "../../ui/toast";
import { t } from "./strings";

/** The project's folders, names and dependencies. */
export function Aside({ detail }: { detail: ProjectDetail }) {
  const { aliases } = detail.project;
  const slug = encodeURIComponent(detail.project.slug);
  return (
    <aside class="aside project-aside">
      <Part title={t.value.contents}>
        {(
          [
            [`/memories?project=${slug}`, t.value.memories(detail.project.memories)],
            [`/sessions?project=${slug}`, t.value.sessions(detail.project.sessions)],
            [`/timeline?project=${slug}`, titles.value.timeline],
          ] as const
        ).map(([address, text]) => (
          <li key={address}>
            <a class="link" href={address}>
              {text}
            </a>
          </li>
        ))}
      </Part>
      <Dependencies detail={detail} />
      {detail.needed_by.length > 0 && (
        <Part title={t.value.neededBy}>
          {detail.needed_by.map((one) => (
            <li key={one}>
              <ProjectLink name={one} />
            </li>
          ))}
        </Part>
      )}
      <Known title={t.value.folders} values={detail.roots} />
      <Known title={t.value.remotes} values={detail.remotes} />
      <Known title={t.value.labels} values={detail.labels} />
      <Known title={t.value.aliases} values={aliases} />
    </aside>
  );
}

function Part({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section>
      <h2>{title}</h2>
      <ul>{children}</ul>
    </section>
  );
}

function Known({ title, values }: { title: string; values: readonly string[] }) {
  if (!values.length) return null;
  return (
    <Part title={title}>
      {values.map((one) => (
        <li key={one}>
          <Text>{one}</Text>
        </li>
      ))}
    </Part>
  );
}

function ProjectLink({ name }: { name: string }) {
  return (
    <a class="link" href={`/projects/${encodeURIComponent(name)}`}>
      <Text>{name}</Text>
    </a>
  );
}

function Dependencies({ detail }: { detail: ProjectDetail }) {
  const { slug, dependencies } = detail.project;
  const isOwner = me.value?.owner ?? false;
  return (
    <Part title={t.value.dependsOn}>
      {dependencies.map((one) => (
        <li key={one} class="project-dependency">
          <ProjectLink name={one} />
          {isOwner && (
            <button type="button" aria-label={t.value.removeOf(one)} onClick={() => depend(slug, one, true)}>
              ×
            </button>
          )}
        </li>
      ))}
      <li class="faint">{t.value.dependsNote}</li>
      {isOwner && <Add detail={detail} />}
    </Part>
  );
}

function Add({ detail }: { detail: ProjectDetail }) {
  const { slug, dependencies } = detail.project;
  const picked = useSignal("");
  const known = useOperation("place", {}, { on: ["session"] }).data?.known ?? [];
  const others = known.filter((one) => one !== slug && !dependencies.includes(one));
  if (!others.length) return null;
  return (
    <li>
      <Select
        bare
        label={t.value.add}
        value={picked.value}
        options={[["", t.value.add], ...others.map((one) => [one, one] as const)]}
        onPick={(one) => one && depend(slug, one, false)}
      />
    </li>
  );
}

function depend(project: string, on: string, remove: boolean): void {
  attempt(async () => {
    await change("project-depend", { project, on: [on], remove });
    toast(remove ? t.value.removed(on) : t.value.added(on), () =>
      change("project-depend", { project, on: [on], remove: !remove }),
    );
  });
}
