import { useSignal } from "@preact/signals";
import { change, useOperation } from "../../api/cache";
import type { Difference, Listed } from "../../api/types";
import { Badge, Button } from "../../ui/controls";
import { Confirm } from "../../ui/dialog";
import { Diff } from "../../ui/diff";
import { bare } from "../../ui/hidden";
import { Section } from "../../ui/layout";
import { Empty, Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { attempt, toast } from "../../ui/toast";
import { t } from "./strings";

const MOST = 50;
const MOST_UNDONE = 200;
const ENDING = 8;

/** The dreams of this home with their changes. */
export function Past({ isOwner }: { isOwner: boolean }) {
  const on = ["operation", "memory"];
  const listed = useOperation("log", { action: "dream", limit: MOST }, { on });
  const undone = useOperation("log", { action: "undo", limit: MOST_UNDONE }, { on }).data ?? [];
  const ends = new Set(undone.map(({ operation }) => (operation.why ?? "").split(" ").at(-1)));
  return (
    <Section title={t.value.past} note={listed.data?.length ? t.value.pastNote : undefined}>
      <Show of={listed} lines={3}>
        {(found) =>
          found.length ? (
            <ul class="dream-past">
              {found.map((one) => (
                <Dream
                  key={one.operation.id}
                  one={one}
                  isOwner={isOwner}
                  isUndone={ends.has(one.operation.id.slice(-ENDING))}
                />
              ))}
            </ul>
          ) : (
            <Empty title={t.value.none}>{t.value.noneNote}</Empty>
          )
        }
      </Show>
    </Section>
  );
}

function Dream({ one, isOwner, isUndone }: { one: Listed; isOwner: boolean; isUndone: boolean }) {
  const { operation, memories } = one;
  const isOpen = useSignal(false);
  const isAsking = useSignal(false);
  const undo = () =>
    attempt(async () => {
      isAsking.value = false;
      await change("undo", { operation: operation.id });
      toast(t.value.takenBack);
    });
  return (
    <li class="dream-one">
      <details onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
        <summary>
          <Time at={operation.at} />
          <span class="clip dream-about" dir="auto">
            <Text>{bare(operation.subject ?? "")}</Text>
          </span>
          <span class="dream-touched">{t.value.touched(memories.length)}</span>
          {isUndone && <Badge>{t.value.undone}</Badge>}
        </summary>
        {isOpen.value && <Differences operation={operation.id} />}
      </details>
      {isOwner && !isUndone && (
        <Button look="quiet" onClick={() => (isAsking.value = true)}>
          {t.value.undo}
        </Button>
      )}
      {isAsking.value && (
        <Confirm title={t.value.undoTitle} action={t.value.undo} onYes={undo} onNo={() => (isAsking.value = false)}>
          {t.value.undoNote}
        </Confirm>
      )}
    </li>
  );
}

function Differences({ operation }: { operation: string }) {
  const diff = useOperation("diff", { reference: operation }, { on: [] });
  return (
    <Show of={diff} lines={4}>
      {({ differences }) => (
        <div class="dream-differences">
          {differences.map((one) => (
            <Changed key={one.change.memory || one.subject} one={one} />
          ))}
        </div>
      )}
    </Show>
  );
}

function Changed({ one }: { one: Difference }) {
  const { change: what, subject, fields, lines } = one;
  const told = fields.filter(({ name }) => !["file", "updated"].includes(name));
  return (
    <section>
      <h4>
        {what.memory ? (
          <a href={`/memories/${what.memory}`} dir="auto">
            <Text>{subject}</Text>
          </a>
        ) : (
          <Text>{subject}</Text>
        )}
        {!what.before && <Badge>{t.value.isNew}</Badge>}
        {told.some(({ name }) => name === "retired") && <Badge tone="warn">{t.value.gone}</Badge>}
      </h4>
      {told.map((field) => (
        <p key={field.name} class="dream-field">
          <span class="dream-field-name">{field.name}</span> <Value value={field.before} isOld />{" "}
          <Value value={field.after} />
        </p>
      ))}
      {lines.length > 0 && <Diff lines={lines} />}
    </section>
  );
}

/** Return the reason of a retirement, without its machine-readable part. */
function reasonOf(value: unknown): string | null {
  return typeof value === "object" && value && "reason" in value ? String(value.reason ?? "") || null : null;
}

function Value({ value, isOld }: { value: unknown; isOld?: boolean }) {
  if (value === null || value === undefined) return null;
  if (typeof value === "string" && /^\d{4}-\d{2}-\d{2}T/.test(value)) {
    return isOld ? (
      <del>
        <Time at={value} />
      </del>
    ) : (
      <Time at={value} />
    );
  }
  const text = typeof value === "string" ? value : (reasonOf(value) ?? JSON.stringify(value));
  return isOld ? (
    <del>
      <Text>{text}</Text>
    </del>
  ) : (
    <Text>{text}</Text>
  );
}
