import { titles } from "../../app/pages";
import { Page } from "../../ui/layout";
import { OwnPageSection } from "../../ui/own-page";
import { t } from "./strings";

export default function Profile() {
  return (
    <Page title={titles.value.profile} note={t.value.note}>
      <OwnPageSection of={{ name: "identity" }} title={t.value.identity} purpose={t.value.identityPurpose} />
      <OwnPageSection of={{ name: "profile" }} title={t.value.profile} purpose={t.value.profilePurpose} />
    </Page>
  );
}
