import { titles } from "../../app/pages";
import { Page } from "../../ui/layout";
import { Empty } from "../../ui/states";
import { t } from "./strings";

export default function Graph() {
  return (
    <Page title={titles.value.graph}>
      <Empty title={t.value.soon} />
    </Page>
  );
}
