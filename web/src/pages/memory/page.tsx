import { useSignal } from "@preact/signals";
import { change, useOperation } from "../../api/cache";
import type { Evidence, Memory, MemoryView } from "../../api/types";
import { useShortcuts } from "../../app/keys";
import type { PageProps } from "../../app/pages";
import { titles } from "../../app/pages";
import { Button } from "../../ui/controls";
import { bare, plain } from "../../ui/hidden";
import { KindName } from "../../ui/kind";
import { Page, Section } from "../../ui/layout";
import { Markdown } from "../../ui/markdown";
import { hasOwnSubject } from "../../ui/memory-facts";
import { Show } from "../../ui/states";
import { Origin, Text, Said as Told } from "../../ui/text";
import { Time } from "../../ui/time";
import { attempt, toast } from "../../ui/toast";
import { Aside, Related } from "./aside";
import { Edit } from "./edit";
import { History } from "./past";
import { t } from "./strings";
import "./page.css";

export default function One({ params }: PageProps) {
  const view = useOperation("look", { reference: params.id ?? "", update: false });
  if (!view.data) {
    return (
      <Page title={titles.value.memories}>
        <Show of={view}>{() => null}</Show>
      </Page>
    );
  }
  return <Whole view={view.data} />;
}

function Whole({ view }: { view: MemoryView }) {
  const isEditing = useSignal(false);
  const { memory } = view;
  const [sentence, rest] = split(memory);
  const edit = () => (isEditing.value = true);
  useShortcuts(titles.value.memories, [{ keys: "e", says: t.value.edit, run: edit }]);
  const actions = memory.retired ? (
    <Button look="primary" onClick={() => restore(view)}>
      {t.value.restore}
    </Button>
  ) : (
    <>
      <Button shortcut="e" onClick={edit}>
        {t.value.edit}
      </Button>
      <Button look="danger" onClick={() => retire(view)}>
        {t.value.retire}
      </Button>
    </>
  );
  return (
    <Page
      wide
      title={plain(bare(memory.subject))}
      heading={
        sentence && !isEditing.value ? (
          <Content view={view} asHeading>
            {sentence}
          </Content>
        ) : null
      }
      actions={isEditing.value ? null : actions}
      note={<Line view={view} />}
    >
      <div class="with-aside">
        <div class="memory-main">
          <State view={view} />
          {isEditing.value ? (
            <Edit view={view} onDone={() => (isEditing.value = false)} />
          ) : (
            rest && <Content view={view}>{rest}</Content>
          )}
          <Related view={view} />
          <Said view={view} />
          <History id={memory.id} />
        </div>
        <Aside view={view} />
      </div>
    </Page>
  );
}

function Line({ view: { memory } }: { view: MemoryView }) {
  return (
    <span class="line">
      <KindName kind={memory.kind} />
      {memory.project && (
        <a class="link" href={`/projects/${encodeURIComponent(memory.project)}`}>
          {memory.project}
        </a>
      )}
      <Time at={memory.created} />
    </span>
  );
}

function State({ view: { memory, doubt } }: { view: MemoryView }) {
  if (memory.retired) {
    return (
      <p class="memory-state">
        {t.value.isRetired} <Time at={memory.retired.at} />{" "}
        {memory.retired.reason && <Text>{memory.retired.reason}</Text>}
      </p>
    );
  }
  if (!memory.superseded_by) {
    return doubt ? (
      <p class="memory-state doubted">
        {t.value.doubt} <Told>{doubt}</Told>
      </p>
    ) : null;
  }
  return (
    <p class="memory-state">
      {t.value.superseded}{" "}
      <a class="link" href={`/memories/${memory.superseded_by}`}>
        {t.value.showNewer}
      </a>
    </p>
  );
}

/** Split content that begins with its subject, so that the sentence is shown only once, as the heading. */
function split(memory: Memory): [sentence: string, rest: string] {
  const [sentence = "", ...rest] = memory.content.split(/\n\s*\n/);
  if (hasOwnSubject(memory) || /^\s*([#>|`~\-*+]|\d+[.)])/.test(sentence)) return ["", memory.content];
  return [sentence, rest.join("\n\n")];
}

function Content({ view, children, asHeading }: { view: MemoryView; children: string; asHeading?: boolean }) {
  const { memory, links } = view;
  const named = new Map(links.map((one) => [one.subject?.toLowerCase(), one.other]));
  const lead = (name: string) => {
    const id = named.get(name.split("|", 1)[0]?.trim().toLowerCase());
    return id ? `/memories/${id}` : null;
  };
  const text = <Markdown names={lead}>{children}</Markdown>;
  return (
    <Origin trust={memory.trust} proposed={memory.proposed}>
      {asHeading ? <h1>{text}</h1> : text}
    </Origin>
  );
}

function Said({ view: { memory, evidence } }: { view: MemoryView }) {
  return (
    <Section
      title={t.value.evidence}
      note={memory.confirmed.length ? t.value.confirmed(memory.confirmed.length) : null}
    >
      {evidence.length === 0 && (
        <p class="faint">{memory.source.session ? t.value.lostEvidence : t.value.noEvidence}</p>
      )}
      <ul class="stack">
        {evidence.map((one) => (
          <li key={`${one.session_id} ${one.turn_id}`}>
            <Quote one={one} isSame={letters(one.excerpt) === letters(memory.content)} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function letters(text: string): string {
  return text.replace(/[^\p{L}\p{N}]+/gu, "").toLowerCase();
}

/** What was said, unless the memory has the same words. */
function Quote({ one, isSame }: { one: Evidence; isSame: boolean }) {
  const to = `/sessions/${encodeURIComponent(one.session_id)}?turn=${encodeURIComponent(one.turn_id)}`;
  return (
    <figure class="memory-quote">
      {!isSame && (
        <blockquote dir="auto">
          <Text>{bare(one.excerpt)}</Text>
        </blockquote>
      )}
      <figcaption>
        <span>{t.value.speakers[one.speaker]}</span>
        {one.time && <Time at={one.time} />}
        <span>{one.session_id.split(":", 1)[0]}</span>
        <a class="link" href={to}>
          {t.value.inSession}
        </a>
      </figcaption>
    </figure>
  );
}

function retire({ memory }: MemoryView): void {
  attempt(async () => {
    await change("retire", { references: [memory.id] });
    toast(t.value.retired(plain(bare(memory.subject))), () => change("unretire", { references: [memory.id] }));
  });
}

function restore({ memory }: MemoryView): void {
  attempt(async () => {
    await change("unretire", { references: [memory.id] });
    toast(t.value.restored);
  });
}
