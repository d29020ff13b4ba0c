import type { Trace } from "../../api/types";
import { number } from "../../i18n/index";

const MICRO = 1e6;

/** Format seconds in the best unit. */
export function duration(taken: number): string {
  if (taken < 1) return `${number(Math.round(taken * 1000))} ms`;
  return taken < 90 ? `${number(Math.round(taken * 10) / 10)} s` : `${number(Math.round(taken / 60))} min`;
}

/** Return the cost of a call in US dollars; empty if unknown. */
export function dollars(trace: Trace): string {
  if (trace.cost === null) return "";
  const cost = trace.cost / MICRO;
  return `$${cost.toFixed(cost < 0.01 ? 4 : 2)}`;
}

/** Return the tokens read and written by a call. */
export function tokens(trace: Trace): number {
  return Object.values(trace.tokens).reduce((sum: number, some) => sum + (typeof some === "number" ? some : 0), 0);
}
