import type { ComponentChildren } from "preact";
import type { Loaded } from "../api/cache";
import type { Problem } from "../api/client";
import { common } from "../i18n/common";
import { Button } from "./controls";
import { Said } from "./text";
import "./states.css";

/** An empty state: the reason, and a way to change it. */
export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="state">
      <span class="state-pearl" aria-hidden="true" />
      <p class="state-title">{title}</p>
      {children && <div class="state-note">{children}</div>}
    </div>
  );
}

/** A problem with its hint. */
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

/** Placeholder lines while text is loading. */
export function Skeleton({ lines = 5 }: { lines?: number }) {
  return (
    <div class="skeleton" role="status" aria-label={common.value.loading}>
      {Array.from({ length: lines }, (_, line) => (
        <span key={line} style={{ width: `${88 - ((line * 37) % 45)}%` }} />
      ))}
    </div>
  );
}

/** The answer of an operation, its loading state or its problem. */
export function Show<T>(props: { of: Loaded<T>; lines?: number; children: (data: T) => ComponentChildren }) {
  const { data, problem, refresh } = props.of;
  if (data !== undefined) return <>{props.children(data)}</>;
  if (problem) return <Failure problem={problem} retry={refresh} />;
  return <Skeleton lines={props.lines ?? 5} />;
}
