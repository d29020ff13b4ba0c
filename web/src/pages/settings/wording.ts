import { t } from "./strings";

/** Format a setting's value for people. */
export function inWords(value: unknown): string {
  if (typeof value === "boolean") return value ? t.value.on : t.value.off;
  if (Array.isArray(value)) return value.length ? value.join(", ") : t.value.nothing;
  if (value && typeof value === "object") return Object.keys(value).length ? JSON.stringify(value) : t.value.nothing;
  return value === "" ? t.value.nothing : String(value);
}
