import { titles } from "../../app/pages";
import { Page } from "../../ui/layout";
import { Empty } from "../../ui/states";
import { t } from "./strings";

export default function Dreams() {
  return (
    <Page title={titles.value.dreams}>
      <Empty title={t.value.soon} />
    </Page>
  );
}
