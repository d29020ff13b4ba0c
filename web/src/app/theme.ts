import { effect, signal } from "@preact/signals";
import { remember, remembered } from "./remembered";

export type Theme = "system" | "light" | "dark";

const kept = remembered("theme");

/** Light or dark; the system's setting unless chosen here. */
export const theme = signal<Theme>(kept === "light" || kept === "dark" ? kept : "system");

effect(() => {
  if (theme.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
  remember("theme", theme.value === "system" ? null : theme.value);
});
