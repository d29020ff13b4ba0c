import { change, useOperation } from "../../api/cache";
import type { Memory, Settled } from "../../api/types";
import { common } from "../../i18n/common";
import { Button } from "../../ui/controls";
import { Section } from "../../ui/layout";
import { Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { attempt, toast } from "../../ui/toast";
import { t } from "./strings";

const MOST = 20;

/** What became of pairs, by a person or by a model alone; each can be undone. */
export function History({ isOwner }: { isOwner: boolean }) {
  const settled = useOperation("settled", {}, { on: ["memory", "operation", "doubt"] }).data ?? [];
  if (!settled.length) return null;
  const undo = (one: Settled) =>
    attempt(async () => {
      await change("undo", { operation: one.operation });
      toast(t.value.undone);
    });
  return (
    <Section title={t.value.settled} note={t.value.settledNote}>
      <ul class="conflict-history">
        {settled.slice(0, MOST).map((one) => (
          <li key={one.operation + one.older_id}>
            <p class="conflict-choice">
              <b>{t.value.choices[one.choice]}</b>
              <Time at={one.at} />
              {one.judge && <span>{t.value.by(one.judge)}</span>}
            </p>
            <p class="conflict-words">
              <Words memory={one.older} isOut={one.choice === "keep-new"} />
              <Words memory={one.newer} isOut={one.choice === "keep-old"} />
            </p>
            {isOwner && (
              <Button look="quiet" onClick={() => undo(one)}>
                {common.value.undo}
              </Button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Words({ memory, isOut }: { memory: Memory | null; isOut: boolean }) {
  if (!memory) return <span class="conflict-none">{t.value.forgotten}</span>;
  const words = <Text>{memory.subject}</Text>;
  return (
    <a href={`/memories/${memory.id}`} dir="auto">
      {isOut ? <s>{words}</s> : words}
    </a>
  );
}
