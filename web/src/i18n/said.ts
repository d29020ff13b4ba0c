import { effect, signal } from "@preact/signals";
import { language } from "./index";

/** What nacre says in English, `{}` for what differs, and what that is in another language: `{}` in order, or `{2}`. */
export type Table = Record<string, string>;

const MARK = /\{(\d?)\}/g;
const LETTERS = /[a-z]/i;
const JOINTS = ["; ", ", "];

/** How to say what nacre says in another language; what the table does not have stays as it is. */
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

/** How many characters of a form are the same each time: those with most are tried first. */
function fixed(form: string): number {
  return form.replaceAll("{}", "").length;
}

/** Fits a text of this form. What it begins with ends where a piece ends: what stands before is a sentence of its own. */
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

/** What nacre itself says (an error, a remedy, a check, a reason), in the language that is shown as far as it is known. */
export function said(text: string): string {
  return language.value === "zh" ? (translate.value?.(text) ?? text) : text;
}
