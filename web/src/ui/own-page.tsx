import { useSignal } from "@preact/signals";
import { change, useOperation } from "../api/cache";
import { asProblem, call } from "../api/client";
import { me } from "../api/me";
import type { Operations, OwnPage } from "../api/types";
import { number, texts } from "../i18n/index";
import { Button, SaveOrCancel, TextArea } from "./controls";
import { WordDiff } from "./diff";
import { Section } from "./layout";
import { Markdown } from "./markdown";
import { Show } from "./states";
import { toast, toastProblem } from "./toast";
import "./own-page.css";

const t = texts({
  en: {
    edit: "Edit",
    write: "Write it",
    told: (n: number) => `at most ${number(n)} tokens of it are told to a session that starts`,
    saved: "Saved",
    hint: "Markdown. Save an empty page to remove it.",
    hintKept: "Markdown. What nacre keeps above the text stays as it is.",
    owner: "Only you can write here: nacre open, in a terminal, lets this browser in as you.",
    conflict: "Somebody changed this page while you wrote",
    conflictNote: "Nothing was overwritten. Marked is what yours would change.",
    mine: "Save mine",
    theirs: "Discard mine",
  },
  zh: {
    edit: "编辑",
    write: "开始写",
    told: (n: number) => `会话开始时最多告知其中 ${number(n)} 个 token`,
    saved: "已保存",
    hint: "Markdown。保存空白内容即删除此页。",
    hintKept: "Markdown。正文之上由 nacre 维护的内容保持不变。",
    owner: "只有你能在这里书写:在终端运行 nacre open,让此浏览器以你的身份登录。",
    conflict: "你编辑时,此页已被他人修改",
    conflictNote: "没有覆盖任何内容。标出的是你的版本将作的改动。",
    mine: "保存我的",
    theirs: "放弃我的",
  },
});

interface Props {
  of: Operations["page-own"][0];
  title: string;
  /** The purpose of the page, shown while it does not exist. */
  purpose: string;
}

/** A page written by the owner, edited in place. Concurrent changes are never overwritten unseen. */
export function OwnPageSection({ of, title, purpose }: Props) {
  const page = useOperation("page-own", of);
  const isEditing = useSignal(false);
  const text = page.data ? shownOf(page.data) : "";
  const edit = me.value?.owner && page.data && !isEditing.value && (
    <Button onClick={() => (isEditing.value = true)}>{text ? t.value.edit : t.value.write}</Button>
  );
  return (
    <Section title={title} note={page.data && t.value.told(page.data.told_tokens)} actions={edit}>
      <Show of={page}>
        {(data) =>
          isEditing.value ? (
            <Editor of={of} page={data} label={title} onDone={() => (isEditing.value = false)} />
          ) : (
            <div class="own-page">
              {text ? <Markdown>{text}</Markdown> : <p class="own-page-purpose">{purpose}</p>}
              {me.value && !me.value.owner && <p class="own-page-purpose">{t.value.owner}</p>}
            </div>
          )
        }
      </Show>
    </Section>
  );
}

function Editor(props: { of: Operations["page-own"][0]; page: OwnPage; label: string; onDone: () => void }) {
  const { of, onDone } = props;
  const base = useSignal(props.page);
  const text = useSignal(bodyOf(props.page));
  const theirs = useSignal<OwnPage | null>(null);
  const isSaving = useSignal(false);
  const save = async () => {
    if (isSaving.peek()) return;
    isSaving.value = true;
    try {
      await change("page-write", { ...of, text: text.peek(), expected: base.peek().etag });
      toast(t.value.saved, await undoing());
      onDone();
    } catch (error) {
      if (asProblem(error).code === "edit_conflict") theirs.value = await call("page-own", of);
      else toastProblem(error);
    }
    isSaving.value = false;
  };
  if (theirs.value) {
    const now = theirs.value;
    return (
      <section class="conflict" role="alert">
        <h3>{t.value.conflict}</h3>
        <p>{t.value.conflictNote}</p>
        <WordDiff before={bodyOf(now)} after={text.value} />
        <div class="buttons">
          <Button
            look="primary"
            onClick={() => {
              base.value = now;
              theirs.value = null;
              save();
            }}
          >
            {t.value.mine}
          </Button>
          <Button onClick={onDone}>{t.value.theirs}</Button>
        </div>
      </section>
    );
  }
  return (
    <form
      class="own-page"
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") onDone();
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
      }}
    >
      <TextArea
        bare
        label={props.label}
        hint={of.name === "project" ? t.value.hintKept : t.value.hint}
        value={text.value}
        rows={14}
        autofocus
        onInput={(event) => (text.value = event.currentTarget.value)}
      />
      <SaveOrCancel isSaving={isSaving.value} onCancel={onDone} />
    </form>
  );
}

/** Return the undo of the last write. */
async function undoing(): Promise<() => unknown> {
  const [last] = await call("log", { action: "page", limit: 1 });
  return () => change("undo", { operation: last?.operation.id ?? null });
}

/** Return the content without a project page's heading, which is the page's title. */
function shownOf(page: OwnPage): string {
  const text = bodyOf(page);
  return page.name === "project" ? text.replace(/^# .*(\n|$)/, "").trim() : text;
}

/** Return the text below the front matter. nacre's front matter is shown as facts. */
function bodyOf({ text }: OwnPage): string {
  return text.replace(/^---\n[\s\S]*?\n---(\n|$)/, "").trim();
}
