import { useEffect } from "preact/hooks";
import { useOperation } from "../../api/cache";
import type { Memory } from "../../api/types";
import { number } from "../../i18n/index";
import { KindMark } from "../../ui/kind";
import { Show } from "../../ui/states";
import { Said, Text } from "../../ui/text";
import { t } from "./strings";

export type Analysis = "central" | "gaps" | "components";

/** A finding of an analysis: the memories to highlight, and the reason. */
interface Finding {
  memory: Memory;
  also: readonly Memory[];
  why: string;
}

const LIMIT = 20;

/** The findings of the graph's analysis. Selecting one highlights it in the picture. */
export function Found(props: {
  what: Analysis;
  project: string | null;
  onPick: (id: string) => void;
  onLight: (ids: ReadonlySet<string>) => void;
}) {
  const request = { limit: LIMIT, project: props.project };
  const off = (one: Analysis) => ({ off: props.what !== one });
  const central = useOperation("graph-central", request, off("central"));
  const gaps = useOperation("graph-gaps", request, off("gaps"));
  const components = useOperation("graph-components", request, off("components"));
  const loaded = { central, gaps, components }[props.what];
  const findings: Finding[] = {
    central: () =>
      (central.data?.found ?? []).map((one) => ({ memory: one.memory, also: [], why: t.value.degree(one.degree) })),
    gaps: () =>
      (gaps.data?.found ?? []).map((one) => ({
        memory: one.memory,
        also: [],
        why: one.degree ? t.value.degree(one.degree) : t.value.unlinked,
      })),
    components: () =>
      (components.data?.found ?? []).flatMap((one) =>
        one.central[0]
          ? [{ memory: one.central[0], also: one.central, why: t.value.group(number(one.size), number(one.links)) }]
          : [],
      ),
  }[props.what]();
  const ids = findings.flatMap((one) => [one.memory.id, ...one.also.map((other) => other.id)]);
  const { onLight } = props;
  useEffect(() => {
    onLight(new Set(ids));
    return () => onLight(new Set());
  }, [ids.join()]);
  return (
    <section class="graph-found">
      <h2>{t.value.analyses[props.what]}</h2>
      <p class="graph-note">{t.value.analysisNotes[props.what]}</p>
      <Show of={loaded as typeof central} lines={5}>
        {() => (
          <>
            {!findings.length && <p class="graph-note">{t.value.foundNone}</p>}
            <ol class="graph-near">
              {findings.map((one) => (
                <li key={one.memory.id}>
                  <button type="button" class="graph-node" onClick={() => props.onPick(one.memory.id)}>
                    <KindMark kind={one.memory.kind} />
                    <span dir="auto">
                      <Text>{one.memory.subject}</Text>
                    </span>
                  </button>
                  <span class="graph-rel">
                    <Said>{one.why}</Said>
                  </span>
                </li>
              ))}
            </ol>
          </>
        )}
      </Show>
    </section>
  );
}
