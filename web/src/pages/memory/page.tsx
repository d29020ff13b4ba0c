import { useSignal } from "@preact/signals";
import { change, useOperation } from "../../api/cache";
import type { Evidence, MemoryView } from "../../api/types";
import { useShortcuts } from "../../app/keys";
import type { PageProps } from "../../app/pages";
import { titles } from "../../app/pages";
import { Button } from "../../ui/controls";
import { plain } from "../../ui/hidden";
import { KindName } from "../../ui/kind";
import { Page, Section } from "../../ui/layout";
import { Markdown } from "../../ui/markdown";
import { Show } from "../../ui/states";
import { Origin, Text, Said as Told } from "../../ui/text";
import { Time } from "../../ui/time";
import { attempt, toast } from "../../ui/toast";
import { Aside } from "./aside";
import { Edit } from "./edit";
import { Before, Changes } from "./past";
import { Ranks } from "./ranks";
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
  const edit = () => {
    isEditing.value = true;
  };
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
    <Page wide title={plain(memory.subject)} actions={isEditing.value ? null : actions} note={<Line view={view} />}>
      <div class="memory">
        <div class="memory-main">
          <State view={view} />
          {isEditing.value ? <Edit view={view} onDone={() => (isEditing.value = false)} /> : <Content view={view} />}
          <Said view={view} />
          <Before id={memory.id} />
          <Changes id={memory.id} />
          <Ranks memory={memory} />
        </div>
        <Aside view={view} />
      </div>
    </Page>
  );
}

function Line({ view: { memory } }: { view: MemoryView }) {
  return (
    <span class="memory-line">
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

function Content({ view: { memory, links } }: { view: MemoryView }) {
  const named = new Map(links.map((one) => [one.subject?.toLowerCase(), one.other]));
  const lead = (name: string) => {
    const id = named.get(name.split("|", 1)[0]?.trim().toLowerCase());
    return id ? `/memories/${id}` : null;
  };
  return (
    <Origin trust={memory.trust} proposed={memory.proposed}>
      <Markdown names={lead}>{memory.content}</Markdown>
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
        <p class="memory-none">{memory.source.session ? t.value.lostEvidence : t.value.noEvidence}</p>
      )}
      <ul class="memory-evidence">
        {evidence.map((one) => (
          <li key={`${one.session_id} ${one.turn_id}`}>
            <Quote one={one} />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Quote({ one }: { one: Evidence }) {
  const to = `/sessions/${encodeURIComponent(one.session_id)}?turn=${encodeURIComponent(one.turn_id)}`;
  return (
    <figure class="memory-quote">
      <blockquote dir="auto">
        <Text>{one.excerpt}</Text>
      </blockquote>
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
    toast(t.value.retired(plain(memory.subject)), () => change("unretire", { references: [memory.id] }));
  });
}

function restore({ memory }: MemoryView): void {
  attempt(async () => {
    await change("unretire", { references: [memory.id] });
    toast(t.value.restored);
  });
}
