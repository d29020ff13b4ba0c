import { useEffect, useRef } from "preact/hooks";
import { useOperation } from "../../api/cache";
import type { Filter, Kind, Mode, Operations } from "../../api/types";
import { titles } from "../../app/pages";
import { query, setQuery } from "../../app/router";
import { common } from "../../i18n/common";
import { Select, TextField } from "../../ui/controls";
import { useDelayed } from "../../ui/delayed";
import { Page, Section } from "../../ui/layout";
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
  return (
    <Page title={titles.value.ask} note={t.value.note}>
      <Question words={words} />
      {settled ? <Results request={requestOf(settled, at)} /> : <Start />}
      <Given question={settled} />
    </Page>
  );
}

function requestOf(text: string, at: URLSearchParams): Operations["recall"][0] {
  const days = Number(at.get("days"));
  const asOf = at.get("as_of");
  const filter: Filter = {
    ...(at.get("project") ? { projects: [at.get("project") ?? ""] } : {}),
    ...(at.get("kind") ? { kinds: [at.get("kind") as Kind] } : {}),
    ...(days ? { since: new Date(`${dayBefore(days)}T00:00`).toISOString() } : {}),
    ...(asOf ? { as_of: asOf } : {}),
    ...(at.get("trusted") ? { trusted: true } : {}),
  };
  const ignore_time = at.has("ignore_time");
  return { text, filter, limit: MOST, update: false, ignore_time, mode: (at.get("mode") || "hybrid") as Mode };
}

function Question({ words }: { words: string }) {
  const element = useRef<HTMLElement>(null);
  const at = query.value;
  const projects = useOperation("place", {}, { on: ["session"] }).data?.known ?? [];
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
      <details class="ask-more" open={isWide() || isFiltered(at)}>
        <summary>{text.filters}</summary>
        <div class="ask-filters">
          <Select
            label={text.project}
            value={at.get("project") ?? ""}
            options={[["", text.allProjects], ...projects.map((one) => [one, one] as const)]}
            onPick={pick("project")}
          />
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
          <TextField
            label={text.asOf}
            type="date"
            value={at.get("as_of") ?? ""}
            onInput={(event) => setQuery({ as_of: event.currentTarget.value })}
          />
          <Select
            label={text.mode}
            value={at.get("mode") ?? "hybrid"}
            options={Object.entries(text.modes)}
            onPick={(mode) => setQuery({ mode: mode === "hybrid" ? null : mode })}
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
    </search>
  );
}

const FILTERS = ["project", "kind", "days", "as_of", "mode", "trusted"];
const isWide = () => matchMedia("(min-width: 721px)").matches;
const isFiltered = (at: URLSearchParams) => FILTERS.some((name) => at.has(name));

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
