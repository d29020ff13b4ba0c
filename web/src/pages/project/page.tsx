import { useSignal } from "@preact/signals";
import { useOperation } from "../../api/cache";
import { me } from "../../api/me";
import type { ProjectDetail } from "../../api/types";
import { type PageProps, titles } from "../../app/pages";
import { Button } from "../../ui/controls";
import { plain } from "../../ui/hidden";
import { Page } from "../../ui/layout";
import { OwnPageSection } from "../../ui/own-page";
import { Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { Statements } from "../beliefs/statements";
import { Aside } from "./aside";
import { Merge, Rename } from "./moving";
import { t } from "./strings";
import "./page.css";

export default function One({ params }: PageProps) {
  const detail = useOperation("project-show", { project: params.name ?? "" });
  if (!detail.data) {
    return (
      <Page title={titles.value.projects}>
        <Show of={detail}>{() => null}</Show>
      </Page>
    );
  }
  return <Whole key={detail.data.project.slug} detail={detail.data} />;
}

function Whole({ detail }: { detail: ProjectDetail }) {
  const { slug, name } = detail.project;
  const asked = useSignal<"" | "rename" | "merge">("");
  const close = () => (asked.value = "");
  return (
    <Page
      wide
      title={plain(slug)}
      note={plain(name) !== plain(slug) && <Text>{name}</Text>}
      actions={
        me.value?.owner && (
          <>
            <Button onClick={() => (asked.value = "rename")}>{t.value.rename}</Button>
            <Button onClick={() => (asked.value = "merge")}>{t.value.merge}</Button>
          </>
        )
      }
    >
      <div class="with-aside">
        <div class="project-main">
          <OwnPageSection of={{ name: "project", project: slug }} title={t.value.page} purpose={t.value.purpose} />
          <Statements project={slug} />
        </div>
        <Aside detail={detail} />
      </div>
      {asked.value === "rename" && <Rename project={detail.project} onClose={close} />}
      {asked.value === "merge" && <Merge project={detail.project} onClose={close} />}
    </Page>
  );
}
