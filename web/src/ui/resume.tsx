import { call } from "../api/client";
import { texts } from "../i18n/index";
import { Button } from "./controls";
import { attempt, toast } from "./toast";

const t = texts({
  en: { resume: "Resume", of: (name: string) => `Resume: ${name}`, copied: (words: string) => `Copied: ${words}` },
  zh: { resume: "继续", of: (name: string) => `继续:${name}`, copied: (words: string) => `已复制:${words}` },
});

/** Copy the command that resumes a session in its tool. */
export function copyCommand(id: string): void {
  attempt(async () => {
    const { command, folder } = await call("resume", { what: id });
    const words = command.map(quoted).join(" ");
    const line = folder ? `cd ${quoted(folder)} && ${words}` : words;
    await navigator.clipboard.writeText(line);
    toast(t.value.copied(line));
  });
}

/** A button that copies the command that resumes a session in its tool. */
export function Resume({ id, name }: { id: string; name: string }) {
  return (
    <Button look="quiet" aria-label={t.value.of(name)} onClick={() => copyCommand(id)}>
      {t.value.resume}
    </Button>
  );
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
