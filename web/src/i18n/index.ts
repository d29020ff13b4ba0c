import { computed, effect, type ReadonlySignal, signal } from "@preact/signals";
import { remember, remembered } from "../app/remembered";

export type Language = "en" | "zh";

function preferred(): Language {
  const kept = remembered("language");
  if (kept === "en" || kept === "zh") return kept;
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}

/** The current language. */
export const language = signal<Language>(preferred());

/** Change the language and store the choice. */
export function speak(chosen: Language): void {
  language.value = chosen;
  remember("language", chosen);
}

effect(() => {
  document.documentElement.lang = language.value === "zh" ? "zh-Hans" : "en";
});

/**
 * Return a page's texts in the current language: `const t = texts({ en, zh })`, then `t.value.title` in a component.
 * Texts with a number are functions: `found: (n: number) => count(n, "memory", "memories")`.
 */
export function texts<T>(all: { en: T; zh: NoInfer<T> }): ReadonlySignal<T> {
  return computed(() => all[language.value]);
}

const english = new Intl.PluralRules("en");

/** Return a number with its English noun. */
export function count(n: number, one: string, other: string): string {
  return `${number(n)} ${english.select(n) === "one" ? one : other}`;
}

/** Return a number with the language's separators. */
export function number(n: number, options?: Intl.NumberFormatOptions): string {
  return new Intl.NumberFormat(language.peek(), options).format(n);
}
