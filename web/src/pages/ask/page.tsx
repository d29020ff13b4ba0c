import { titles } from "../../app/pages";
import { Page } from "../../ui/layout";
import { Empty } from "../../ui/states";
import { t } from "./strings";

export default function Ask() {
  return (
    <Page title={titles.value.ask}>
      <Empty title={t.value.soon} />
    </Page>
  );
}
