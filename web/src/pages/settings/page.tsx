import { titles } from "../../app/pages";
import { query, setQuery } from "../../app/router";
import { Segments } from "../../ui/controls";
import { Page } from "../../ui/layout";
import { Checks } from "./checks";
import { Home } from "./home";
import { Overview } from "./overview";
import { Settings } from "./settings";
import { t } from "./strings";
import "./page.css";

const VIEWS = { overview: Overview, settings: Settings, checks: Checks, home: Home };
type View = keyof typeof VIEWS;

export default function SettingsPage() {
  const asked = query.value.get("view") as View | null;
  const usual = query.value.has("q") || query.value.has("which") ? "settings" : "overview";
  const view = asked && asked in VIEWS ? asked : usual;
  const Shown = VIEWS[view];
  return (
    <Page
      title={titles.value.settings}
      actions={
        <Segments
          label={t.value.view}
          value={view}
          options={(Object.keys(VIEWS) as View[]).map((one) => [one, t.value.views[one]] as const)}
          onPick={(picked) => setQuery({ view: picked === "overview" ? null : picked, q: null, which: null })}
        />
      }
    >
      <Shown />
    </Page>
  );
}
