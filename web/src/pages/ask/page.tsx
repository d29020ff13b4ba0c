import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { useOperation } from "../../api/cache";
import type { Filter, Kind, Operations } from "../../api/types";
import { titles } from "../../app/pages";
import { query, setQuery } from "../../app/router";
import { common } from "../../i18n/common";
import { Chip, Select, TextField } from "../../ui/controls";
import { useDelayed } from "../../ui/delayed";
import { Page, Section } from "../../ui/layout";
import { ProjectSelect } from "../../ui/project-select";
import { Empty } from "../../ui/states";
import { Text } from "../../ui/text";
import { dayBefore } from "../../ui/time";
import { Given } from "./given";
import { Results } from "./results";
import { t } from "./strings";
import "./page.css";

const MOST = 10;
const MOST_GAPS = 5;

export default function Ask() {
  const at = query.value;
  const words = at.get("q") ?? "";
  const settled = useDelayed(words.trim());
  const isGivenOpen = useSignal(false);
  return (
    <Page title={titles.value.ask} note={t.value.note}>
      <Question words={words} />
      {settled ? <Results request={requestOf(settled, at)} /> : <Start />}
      <details class="ask-given" onToggle={(event) => (isGivenOpen.value = event.currentTarget.open)}>
        <summary>
          {t.value.given} <span class="faint">{t.value.givenNote}</span>
        </summary>
        {isGivenOpen.value && <Given question={settled} />}
      </details>
    </Page>
  );
}

function requestOf(text: string, at: URLSearchParams): Operations["recall"][0] {
  const days = Number(at.get("days"));
  const filter: Filter = {
    ...(at.get("project") ? { projects: [at.get("project") ?? ""] } : {}),
    ...(at.get("kind") ? { kinds: [at.get("kind") as Kind] } : {}),
    ...(days ? { since: new Date(`${dayBefore(days)}T00:00`).toISOString() } : {}),
    ...(at.get("trusted") ? { trusted: true } : {}),
  };
  return { text, filter, limit: MOST, update: false, ignore_time: at.has("ignore_time") };
}

function Question({ words }: { words: string }) {
  const element = useRef<HTMLElement>(null);
  const at = query.value;
  useEffect(() => {
    if (!words) element.current?.querySelector("input")?.focus();
  }, []);
  const text = t.value;
  const pick = (name: string) => (value: string) => setQuery({ [name]: value });
  return (
    <search class="ask-question" ref={element}>
      <TextField
        bare
        type="search"
        label={text.ask}
        placeholder={text.ask}
        value={words}
        onInput={(event) => setQuery({ q: event.currentTarget.value })}
      />
      <div class="ask-chips">
        {CHIPS.map(
          (name) =>
            at.get(name) && (
              <Chip key={name} onRemove={() => setQuery({ [name]: null })}>
                {nameOf(name, at.get(name) ?? "")}
              </Chip>
            ),
        )}
        <details>
          <summary>{text.filters}</summary>
          <div class="ask-filters">
            <ProjectSelect value={at.get("project") ?? ""} onPick={pick("project")} />
            <Select
              label={text.kind}
              value={at.get("kind") ?? ""}
              options={[["", text.allKinds], ...Object.entries(common.value.kinds)]}
              onPick={pick("kind")}
            />
            <Select
              label={text.time}
              value={at.get("days") ?? ""}
              options={Object.entries(text.times)}
              onPick={pick("days")}
            />
            <Select
              label={text.trust}
              value={at.get("trusted") ?? ""}
              options={[
                ["", text.anyTrust],
                ["1", text.trusted],
              ]}
              onPick={pick("trusted")}
            />
          </div>
        </details>
      </div>
    </search>
  );
}

const CHIPS = ["project", "kind", "days", "trusted", "ignore_time"] as const;

/** Return the words of a filter. */
function nameOf(name: (typeof CHIPS)[number], value: string): string {
  if (name === "kind") return common.value.kinds[value as Kind] ?? value;
  if (name === "days") return t.value.times[value as keyof typeof t.value.times] ?? value;
  return { project: value, trusted: t.value.trusted, ignore_time: t.value.timeIgnored }[name];
}

/** The empty page: example questions, and unanswered questions. */
function Start() {
  const gaps = useOperation("unanswered", { limit: MOST_GAPS }, { on: [] }).data?.gaps ?? [];
  if (!gaps.length) return <Empty title={t.value.start}>{t.value.startNote}</Empty>;
  return (
    <Section title={t.value.gaps} note={t.value.gapsNote}>
      <ul class="ask-gaps">
        {gaps.map((gap) => (
          <li key={gap.id}>
            <a href={`/ask?q=${encodeURIComponent(gap.question)}`} dir="auto">
              <Text>{gap.question}</Text>
            </a>
            <span>{t.value.times_(gap.times)}</span>
          </li>
        ))}
      </ul>
    </Section>
  );
}
