import { effect, signal } from "@preact/signals";
import { language } from "./index";

/** nacre's English texts, `{}` for variable parts, and their translations with `{}` in order, or `{2}`. */
export type Table = Record<string, string>;

const MARK = /\{(\d?)\}/g;
const LETTERS = /[a-z]/i;
const JOINTS = ["; ", ", "];

/** Translate a text of nacre. Texts missing in the table stay unchanged. */
export function translator(table: Table): (text: string) => string {
  const forms = Object.entries(table)
    .filter(([english]) => english.includes("{}"))
    .sort(([one], [other]) => fixed(other) - fixed(one))
    .map(([english, other]) => ({ pattern: asPattern(english), other }));
  const known = new Map(Object.entries(table));

  const translate = (text: string): string => {
    const found = known.get(text) ?? byForm(text) ?? inPieces(text);
    if (known.size > MOST_KEPT) return found;
    known.set(text, found);
    return found;
  };
  const byForm = (text: string): string | undefined => {
    for (const { pattern, other } of LETTERS.test(text) ? forms : []) {
      const values = pattern.exec(text);
      if (values) {
        let place = 0;
        return other.replace(MARK, (_, number: string) => translate(values[Number(number) || ++place] ?? ""));
      }
    }
    return undefined;
  };
  const inPieces = (text: string): string => {
    const joint = JOINTS.find((one) => text.includes(one));
    return joint ? text.split(joint).map(translate).join(joint.trim()) : text;
  };
  return translate;
}

/** Return the number of fixed characters of a form. Forms with most are tried first. */
function fixed(form: string): number {
  return form.replaceAll("{}", "").length;
}

/** Match a text with a form. Its variable beginning must end at a sentence or part. */
function asPattern(form: string): RegExp {
  const parts = form.split("{}").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const whole = parts.join("(.*?)").replace(/^\(\.\*\?\)/, "((?:(?!; |, ).)*?)");
  return new RegExp(`^${whole}$`, "s");
}

const MOST_KEPT = 5_000;

const translate = signal<((text: string) => string) | null>(null);

effect(() => {
  if (language.value === "zh" && !translate.peek()) {
    import("./said.zh.json").then(({ default: table }) => {
      translate.value = translator(table);
    });
  }
});

/** Translate a text of nacre (an error, hint, check or reason) into the current language if possible. */
export function said(text: string): string {
  return language.value === "zh" ? (translate.value?.(text) ?? text) : text;
}
