import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { change, useOperation } from "../../api/cache";
import { asProblem, type Problem } from "../../api/client";
import { me } from "../../api/me";
import type { SettingView } from "../../api/types";
import { useShortcuts } from "../../app/keys";
import { query, setQuery } from "../../app/router";
import { said } from "../../i18n/said";
import { Badge, Button, Segments, TextField } from "../../ui/controls";
import { Section } from "../../ui/layout";
import { Empty, Show } from "../../ui/states";
import { Said } from "../../ui/text";
import { attempt, toast } from "../../ui/toast";
import { t } from "./strings";
import { Control } from "./values";
import { inWords } from "./wording";

/** All settings in groups, optionally only changed ones. */
export function Settings() {
  const found = useOperation("config", {}, { on: ["operation"] });
  const words = (query.value.get("q") ?? "").toLowerCase();
  const onlyChanged = query.value.get("which") === "changed";
  const bar = useRef<HTMLDivElement>(null);
  useShortcuts(t.value.title, [
    { keys: "f", says: t.value.filterKey, run: () => bar.current?.querySelector("input")?.focus() },
  ]);
  return (
    <>
      <div class="settings-bar" ref={bar}>
        <TextField
          bare
          label={t.value.find}
          type="search"
          placeholder={t.value.find}
          value={query.value.get("q") ?? ""}
          onInput={(event) => setQuery({ q: event.currentTarget.value })}
        />
        <Segments
          label={t.value.which}
          value={onlyChanged ? "changed" : "all"}
          options={[
            ["all", t.value.any],
            ["changed", t.value.changed],
          ]}
          onPick={(picked) => setQuery({ which: picked === "changed" ? picked : null })}
        />
      </div>
      {me.value && !me.value.owner && <p class="faint">{t.value.ownerOnly}</p>}
      <Show of={found} lines={12}>
        {(all) => {
          const shown = all.filter(
            (one) =>
              `${one.key} ${one.summary} ${said(one.summary)}`.toLowerCase().includes(words) &&
              !(onlyChanged && one.origin === "default"),
          );
          return (
            <>
              <p class="sr-only" role="status">
                {t.value.found(shown.length)}
              </p>
              {!shown.length && <Empty title={t.value.none}>{t.value.noneNote}</Empty>}
              {grouped(shown).map(([name, group]) => (
                <Section key={name} title={t.value.groups[name] ?? name} note={t.value.notes[name]}>
                  <ul>
                    {group.map((one) => (
                      <Row key={one.key} setting={one} />
                    ))}
                  </ul>
                </Section>
              ))}
            </>
          );
        }}
      </Show>
    </>
  );
}

/** A setting with its control. A brief row has a description in place of the key. */
export function Row({ setting, brief }: { setting: SettingView; brief?: boolean }) {
  const problem = useSignal<Problem | null>(null);
  const { key, origin, variable } = setting;
  const isFromVariable = origin === `$${variable}`;
  const isChanged = origin !== "default" && !isFromVariable;
  const isOwner = me.value?.owner ?? false;
  const save = async (value: unknown) => {
    try {
      await change("config-set", { key, value });
      problem.value = null;
      toast(t.value.saved(key), () => putBack(setting));
    } catch (error) {
      problem.value = asProblem(error);
    }
  };
  return (
    <li class={brief && setting.form === "switch" ? "settings-row brief" : "settings-row"}>
      <div class="settings-words">
        <h3>
          {brief ? <span title={key}>{inLanguage(setting.summary)}</span> : <code>{key}</code>}
          {isChanged && <Badge tone="accent">{t.value.fromFile}</Badge>}
          {isFromVariable && <Badge>{t.value.fromVariable(variable)}</Badge>}
        </h3>
        {!brief && (
          <p>
            {inLanguage(setting.summary)}
            {t.value.stop}
          </p>
        )}
        {isFromVariable && <p class="faint">{t.value.variableNote(variable)}</p>}
      </div>
      <div class="settings-value">
        <Control key={JSON.stringify(setting.value)} setting={setting} off={!isOwner || isFromVariable} onSave={save} />
        {problem.value && (
          <p class="field-error" role="alert">
            <Said>{problem.value.message}</Said>
            {problem.value.hint && (
              <span>
                {" "}
                (<Said>{problem.value.hint}</Said>)
              </span>
            )}
          </p>
        )}
        {isChanged && (
          <p class="settings-default">
            <span>{t.value.standard(inWords(setting.default))}</span>
            {isOwner && (
              <Button
                look="quiet"
                aria-label={`${t.value.reset}: ${key}`}
                onClick={() => attempt(() => reset(setting))}
              >
                {t.value.reset}
              </Button>
            )}
          </p>
        )}
      </div>
    </li>
  );
}

/** A setting's description as a sentence. */
function inLanguage(summary: string): string {
  const told = said(summary);
  return told === summary ? capital(summary) : told;
}

async function reset(setting: SettingView) {
  const before = setting.value;
  await change("config-unset", { key: setting.key });
  const isWhole = !/…|\[REDACTED:/.test(JSON.stringify(before));
  const undo = isWhole ? () => change("config-set", { key: setting.key, value: before }) : undefined;
  toast(t.value.wasReset(setting.key), undo);
}

/** Return the previous value of a setting: its default or the file's value. */
function putBack({ key, value, origin }: SettingView) {
  return origin === "default" ? change("config-unset", { key }) : change("config-set", { key, value });
}

function grouped(all: readonly SettingView[]): [string, SettingView[]][] {
  const groups = new Map<string, SettingView[]>();
  for (const one of all) {
    const name = one.key.split(".", 1)[0] ?? "";
    groups.set(name, [...(groups.get(name) ?? []), one]);
  }
  return [...groups];
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
