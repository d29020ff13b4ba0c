import type { ComponentChildren } from "preact";
import type { Loaded } from "../api/cache";
import type { Problem } from "../api/client";
import { common } from "../i18n/common";
import { Button } from "./controls";
import { Said } from "./text";
import "./states.css";

/** Nothing is there: why, and what would change that. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state">
      <span class="state-pearl" aria-hidden="true" />
      <p class="state-title">{title}</p>
      {children && <div class="state-note">{children}</div>}
    </div>
  );
}

/** Something went wrong: what, and what helps. */
export function Failure({ problem, retry }: { problem: Problem; retry?: () => void }) {
  return (
    <div class="state failure" role="alert">
      <p class="state-title">
        <Said>{problem.message}</Said>
      </p>
      {problem.hint && (
        <p class="state-note">
          <Said>{problem.hint}</Said>
        </p>
      )}
      {retry && <Button onClick={retry}>{common.value.retry}</Button>}
    </div>
  );
}

/** Lines where text will be. */
export function Skeleton({ lines = 5 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label={common.value.loading}>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} style={{ width: `${88 - ((line * 37) % 45)}%` }} />
      ))}
    </div>
  );
}

/** What an operation answers, or that it is awaited, or why it failed. */
export function Show<T>(props: { of: Loaded<T>; lines?: number; children: (data: T) => ComponentChildren }) {
  const { data, problem, refresh } = props.of;
  if (data !== undefined) return <>{props.children(data)}</>;
  if (problem) return <Failure problem={problem} retry={refresh} />;
  return <Skeleton lines={props.lines ?? 5} />;
}
