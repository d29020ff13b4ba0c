import { useOperation } from "../../api/cache";
import { Badge } from "../../ui/controls";
import { Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { Said, Text } from "../../ui/text";
import { Agents } from "./agents";
import { Row } from "./settings";
import { t } from "./strings";

const PRIVACY = ["redaction.emails", "redaction.home_paths", "redaction.payment_cards", "ingest.exclude_projects"];
const SWITCHES = [
  "extraction.enabled",
  "daemon.watch",
  "daemon.enabled",
  "context.signals",
  "dream.at_night",
  "forgetting.enabled",
  "archive.enabled",
  "git.enabled",
];

/** What people change: agents, writer, privacy and a few switches. */
export function Overview() {
  return (
    <>
      <Agents />
      <Writer />
      <Rows title={t.value.privacy} keys={PRIVACY} />
      <Rows title={t.value.switches} keys={SWITCHES} />
    </>
  );
}

function Writer() {
  const writer = useOperation("writer", {}, { on: ["operation"] });
  return (
    <Section title={t.value.writer} note={t.value.writerNote}>
      <Show of={writer} lines={1}>
        {({ writer: model, state, problem, hint }) => (
          <div class="settings-agent">
            <div class="settings-words">
              <h3>
                {state === "off" ? t.value.noWriter : <Text>{model}</Text>}
                {state !== "off" && <Badge tone={state === "ready" ? "good" : "warn"}>{t.value.writers[state]}</Badge>}
              </h3>
              {problem && (
                <p>
                  <Said>{problem}</Said> {hint && <Said>{hint}</Said>}
                </p>
              )}
            </div>
            <code>nacre writer set</code>
          </div>
        )}
      </Show>
    </Section>
  );
}

function Rows({ title, keys }: { title: string; keys: readonly string[] }) {
  const found = useOperation("config", {}, { on: ["operation"] });
  return (
    <Section title={title}>
      <Show of={found} lines={keys.length}>
        {(all) => (
          <ul>
            {keys.map((key) => {
              const setting = all.find((one) => one.key === key);
              return setting && <Row key={key} setting={setting} brief />;
            })}
          </ul>
        )}
      </Show>
    </Section>
  );
}
