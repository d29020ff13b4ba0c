import { useOperation } from "../../api/cache";
import type { Comparison, Usefulness } from "../../api/types";
import { number } from "../../i18n/index";
import { Table } from "../../ui/charts";
import { Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { Nothing } from "./nothing";
import { t } from "./strings";

/** The usefulness of memory: sessions with and without it, compared. */
export function Useful() {
  const found = useOperation("usefulness", {}, { on: [] });
  return (
    <Section title={t.value.usefulness}>
      <Show of={found} lines={4}>
        {(shown) => (shown.since ? <Compared found={shown} /> : <Off found={shown} />)}
      </Show>
    </Section>
  );
}

function Off({ found }: { found: Usefulness }) {
  if (found.share) return <p class="usage-note">{t.value.heldOut(percent(found.share))}</p>;
  return (
    <Nothing
      title={t.value.noHoldOut}
      note={
        <>
          {t.value.noHoldOutNote}{" "}
          <a class="link" href="/settings?q=usefulness.hold_out">
            {t.value.set}
          </a>
        </>
      }
    />
  );
}

function Compared({ found }: { found: Usefulness }) {
  const seen = found.sessions_told + found.sessions_held_out;
  return (
    <>
      <p class="usage-note">
        {t.value.heldOut(percent(found.compared))} · {t.value.compared(found.sessions_told, found.sessions_held_out)}
        {seen < found.needed && ` · ${t.value.needed(found.needed)}`}
      </p>
      <Table
        axis={t.value.aspect}
        columns={[t.value.told, t.value.without, t.value.finding]}
        rows={found.comparisons.map((one) => [
          t.value.aspects[one.aspect] ?? one.aspect,
          [value(one, one.told), value(one, one.held_out), t.value.findings[one.finding] ?? one.finding],
        ])}
      />
    </>
  );
}

function value(one: Comparison, measured: number | null): string {
  if (measured === null) return "–";
  return number(one.aspect === "messages" ? measured : measured * 100, { maximumFractionDigits: 1 });
}

function percent(share: number): string {
  return number(share, { style: "percent" });
}
