import { useOperation } from "../../api/cache";
import { titles } from "../../app/pages";
import { go } from "../../app/router";
import { Select } from "../../ui/controls";
import { Page } from "../../ui/layout";
import { OwnPageSection } from "../../ui/own-page";
import { Statements } from "./statements";
import { t } from "./strings";

export default function Beliefs() {
  const known = useOperation("place", {}, { on: ["session"] }).data?.known ?? [];
  const about = (
    <Select
      bare
      label={t.value.about}
      value=""
      options={[["", t.value.you], ...known.map((project) => [project, project] as const)]}
      onPick={(project) => go(`/projects/${encodeURIComponent(project)}`)}
    />
  );
  return (
    <Page title={titles.value.beliefs} note={t.value.note} actions={about}>
      <Statements project={null} />
      <OwnPageSection of={{ name: "identity" }} title={t.value.identity} purpose={t.value.identityPurpose} />
      <OwnPageSection of={{ name: "profile" }} title={t.value.profile} purpose={t.value.profilePurpose} />
    </Page>
  );
}
