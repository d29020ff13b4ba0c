import { titles } from "../../app/pages";
import { Page } from "../../ui/layout";
import { Empty } from "../../ui/states";
import { t } from "./strings";

export default function Project() {
  return (
    <Page title={titles.value.projects}>
      <Empty title={t.value.soon} />
    </Page>
  );
}
