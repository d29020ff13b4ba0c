import { useSignal } from "@preact/signals";
import { useOperation } from "../../api/cache";
import type { ContextBlock, ContextItem, LeftOut, Moment, ProjectLine } from "../../api/types";
import { number } from "../../i18n/index";
import { said } from "../../i18n/said";
import { Segments, Select, TextArea, TextField } from "../../ui/controls";
import { useDelayed } from "../../ui/delayed";
import { Empty, Show } from "../../ui/states";
import { Said, Text } from "../../ui/text";
import { t } from "./strings";

/** The context that an agent gets in a folder, at a session's start or with a prompt. */
export function Given({ question }: { question: string }) {
  const chosen = useSignal<string | null>(null);
  const folder = useSignal<string | null>(null);
  const moment = useSignal<Moment>("start");
  const prompt = useSignal<string | null>(null);
  const projects = useOperation("project-list", {}, { on: ["session"] }).data ?? [];
  const project = chosen.value ?? latest(projects);
  const root = useOperation("project-show", { project }, { off: !project, on: [] }).data?.roots[0] ?? "";
  const typedFolder = folder.value ?? (project ? root : "");
  const where = useDelayed(typedFolder.trim());
  const typed = useDelayed((prompt.value ?? question).trim());
  const isPrompt = moment.value === "prompt";
  const request = { folder: where, moment: moment.value, prompt: isPrompt ? typed : "" };
  const missing = where ? isPrompt && !typed && t.value.typePrompt : t.value.typeFolder;
  const block = useOperation("context", request, { keep: true, off: Boolean(missing), on: ["memory"] });
  return (
    <>
      <div class="given-form">
        <Select
          label={t.value.where}
          value={project}
          options={[["", t.value.elsewhere], ...projects.map(({ slug }) => [slug, slug] as const)]}
          onPick={(picked) => {
            chosen.value = picked;
            folder.value = null;
          }}
        />
        <TextField
          label={t.value.folder}
          hint={t.value.folderHint}
          value={typedFolder}
          onInput={(event) => (folder.value = event.currentTarget.value)}
        />
        <div class="field">
          <span class="field-label" aria-hidden="true">
            {t.value.moment}
          </span>
          <Segments
            label={t.value.moment}
            value={moment.value}
            options={[
              ["start", t.value.moments.start],
              ["prompt", t.value.moments.prompt],
            ]}
            onPick={(picked) => (moment.value = picked)}
          />
        </div>
      </div>
      {isPrompt && (
        <TextArea
          label={t.value.prompt}
          rows={3}
          class="given-prompt"
          value={prompt.value ?? question}
          onInput={(event) => (prompt.value = event.currentTarget.value)}
        />
      )}
      {missing ? (
        <Empty title={missing} />
      ) : (
        <Show of={block}>{(data) => <Block block={data} isPrompt={isPrompt} />}</Show>
      )}
    </>
  );
}

/** Return the project of the latest session. */
function latest(projects: readonly ProjectLine[]): string {
  const worked = projects.filter(({ sessions }) => sessions > 0);
  return worked.reduce((one, other) => ((other.last ?? "") > (one?.last ?? "") ? other : one), worked[0])?.slug ?? "";
}

function Block({ block, isPrompt }: { block: ContextBlock; isPrompt: boolean }) {
  const view = useSignal<"items" | "text">("items");
  const why = block.gate && !block.items.length ? said(block.gate) : null;
  return (
    <div class="given">
      {block.text ? (
        <>
          <header class="given-head">
            <p>
              <b>{t.value.tokens(block.tokens)}</b> · {t.value.things(block.items.length)} ·{" "}
              {number(Math.round(block.took_ms))} ms
            </p>
            <Segments
              label={t.value.show}
              value={view.value}
              options={[
                ["items", t.value.asItems],
                ["text", t.value.asText],
              ]}
              onPick={(picked) => (view.value = picked)}
            />
          </header>
          {view.value === "text" ? (
            <pre class="given-text" dir="auto">
              <Text>{block.text}</Text>
            </pre>
          ) : (
            <Items items={block.items} />
          )}
        </>
      ) : (
        <Empty title={t.value.nothingGiven}>{why ?? (isPrompt ? t.value.nothingPrompt : t.value.nothingStart)}</Empty>
      )}
      {block.left_out.length > 0 && <LeftOuts left={block.left_out} />}
    </div>
  );
}

function Items({ items }: { items: readonly ContextItem[] }) {
  const parts = [...new Set(items.map(({ part }) => part))];
  return (
    <>
      {parts.map((part) => {
        const own = items.filter((item) => item.part === part);
        return (
          <section key={part} class="given-part">
            <h3>
              {t.value.partNames[part]}
              <span>{t.value.tokens(own.reduce((sum, item) => sum + item.tokens, 0))}</span>
            </h3>
            <ul>
              {own.map((item) => (
                <li key={item.ref ?? item.text}>
                  <p dir="auto">
                    <Text>{item.text.replace(/^[-> ]+/, "")}</Text>
                  </p>
                  <p class="given-why">
                    {item.ref && !item.ref.includes("#") && (
                      <a class="link" href={`/memories/${item.ref}`}>
                        {item.why ? <Said>{item.why}</Said> : item.ref.slice(-8)}
                      </a>
                    )}
                    {!(item.ref && !item.ref.includes("#")) && item.why && <Said>{item.why}</Said>}
                    <span>{t.value.tokens(item.tokens)}</span>
                  </p>
                </li>
              ))}
            </ul>
          </section>
        );
      })}
    </>
  );
}

function LeftOuts({ left }: { left: readonly LeftOut[] }) {
  const counts = new Map<string, number>();
  for (const { part, why } of left) {
    const told = `${t.value.partNames[part]}: ${said(why)}`;
    counts.set(told, (counts.get(told) ?? 0) + 1);
  }
  return (
    <details class="given-left">
      <summary>
        {t.value.leftOut} ({number(left.length)})
      </summary>
      <ul>
        {[...counts].map(([told, times]) => (
          <li key={told}>
            {told}
            {times > 1 && <span>{number(times)}</span>}
          </li>
        ))}
      </ul>
    </details>
  );
}
