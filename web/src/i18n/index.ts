import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { remember, remembered } from "../app/remembered";

export type Language = "en" | "zh";

function preferred(): Language {
  const kept = remembered("language");
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** The language that is shown. */
export const language = signal<Language>(preferred());

/** Show another language, and keep to it. */
export function speak(chosen: Language): void {
  language.value = chosen;
  remember("language", chosen);
}

effect(() => {
  document.documentElement.lang = language.value === "zh" ? "zh-Hans" : "en";
});

/**
 * A page's texts in the language that is shown: `const t = texts({ en, zh })`, then `t.value.title` in a component.
 * A text with a number is a function: `found: (n: number) => count(n, "memory", "memories")`.
 */
export function texts<T>(all: { en: T; zh: NoInfer<T> }): ReadonlySignal<T> {
  return computed(() => all[language.value]);
}

const english = new Intl.PluralRules("en");

/** A number with its noun, in English. */
export function count(n: number, one: string, other: string): string {
  return `${number(n)} ${english.select(n) === "one" ? one : other}`;
}

/** A number with separators, as the language writes it. */
export function number(n: number, options?: Intl.NumberFormatOptions): string {
  return new Intl.NumberFormat(language.peek(), options).format(n);
}
