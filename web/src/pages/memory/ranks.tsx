import { useSignal } from "@preact/signals";
import { useOperation } from "../../api/cache";
import type { Memory, MemoryHit } from "../../api/types";
import { number } from "../../i18n/index";
import { Table } from "../../ui/charts";
import { Button, TextField } from "../../ui/controls";
import { Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { t } from "./strings";

const LOOKED_AT = 20;

/** The memory's score for a question, with its parts. */
export function Ranks({ memory }: { memory: Memory }) {
  const typed = useSignal("");
  const asked = useSignal("");
  return (
    <Section title={t.value.ranks}>
      <form
        class="memory-ask"
        onSubmit={(event) => {
          event.preventDefault();
          asked.value = typed.value.trim();
        }}
      >
        <TextField
          bare
          label={t.value.question}
          placeholder={t.value.ranksHint}
          value={typed.value}
          onInput={(event) => {
            typed.value = event.currentTarget.value;
          }}
        />
        <Button type="submit">{t.value.askIt}</Button>
      </form>
      {asked.value && <Answer question={asked.value} id={memory.id} />}
    </Section>
  );
}

function Answer({ question, id }: { question: string; id: string }) {
  const found = useOperation("recall", { text: question, limit: LOOKED_AT, update: false, turns: 0 }, { on: [] });
  return (
    <Show of={found} lines={3}>
      {(result) => {
        const place = result.hits.findIndex((one) => one.memory.id === id);
        const hit = result.hits[place];
        return hit ? <Parts hit={hit} place={place + 1} /> : <p class="memory-none">{t.value.notFound}</p>;
      }}
    </Show>
  );
}

function Parts({ hit, place }: { hit: MemoryHit; place: number }) {
  const rows = Object.entries(hit.components).map(
    ([name, value]) => [t.value.parts[name] ?? name, [number(value, { maximumFractionDigits: 3 })]] as const,
  );
  return <Table axis={t.value.place(place)} columns={[number(hit.score, { maximumFractionDigits: 3 })]} rows={rows} />;
}
