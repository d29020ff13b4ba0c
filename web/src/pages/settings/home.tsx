import { useOperation } from "../../api/cache";
import { me } from "../../api/me";
import { number } from "../../i18n/index";
import { Facts, Section } from "../../ui/layout";
import { Show } from "../../ui/states";
import { t } from "./strings";

/** The contents of this home, and its users. */
export function Home() {
  const stats = useOperation("db-stats", {});
  const home = me.value;
  return (
    <>
      <Section title={t.value.views.home}>
        <Show of={stats}>
          {(held) => (
            <Facts
              rows={[
                [t.value.version, home?.version],
                [t.value.place, <code key="place">{home?.home}</code>],
                [t.value.database, megabytes(held.database_bytes)],
                [
                  t.value.held,
                  t.value.heldWhat(
                    sum(Object.values(held.memories)),
                    held.links,
                    sum(held.tools.map((one) => one.sessions)),
                  ),
                ],
                [t.value.embedding, held.model ?? t.value.withoutModel],
                [t.value.vectors, held.model && held.vectors_missing ? number(held.vectors_missing) : null],
              ]}
            />
          )}
        </Show>
      </Section>
      <Section title={t.value.access}>
        <Facts
          rows={[
            [
              t.value.browsers,
              <div key="browsers" class="settings-access">
                <p>
                  <code>nacre open</code> {t.value.openNote}
                </p>
                <p>
                  <code>nacre open --forget</code> {t.value.browsersNote}
                </p>
              </div>,
            ],
            [
              t.value.token,
              <div key="token" class="settings-access">
                <code>{home && `${home.home}/http.token`}</code>
                <p>{t.value.tokenNote}</p>
              </div>,
            ],
            [
              t.value.api,
              <a key="api" class="link" href="/api/openapi.json" target="_blank" rel="noreferrer">
                /api/openapi.json
              </a>,
            ],
          ]}
        />
      </Section>
    </>
  );
}

function megabytes(bytes: number): string {
  return `${number(bytes / 1e6, { maximumFractionDigits: 1 })} MB`;
}

function sum(values: readonly number[]): number {
  return values.reduce((all, one) => all + one, 0);
}
