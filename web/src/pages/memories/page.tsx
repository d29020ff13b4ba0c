import { useOperation } from "../../api/cache";
import { type Paged, usePaged } from "../../api/paged";
import type { Kind, Memory } from "../../api/types";
import { titles } from "../../app/pages";
import { query, setQuery } from "../../app/router";
import { common } from "../../i18n/common";
import { Button, Select, TextField } from "../../ui/controls";
import { Page } from "../../ui/layout";
import { List } from "../../ui/list";
import { MemoryRow } from "../../ui/memory-row";
import { ProjectSelect } from "../../ui/project-select";
import { Empty, Failure, Skeleton } from "../../ui/states";
import { dayHeading } from "../../ui/time";
import { t } from "./strings";
import "./page.css";

interface Filters {
  words: string;
  project: string;
  kind: string;
  state: string;
}

export default function Memories() {
  const at = query.value;
  const filters: Filters = {
    words: at.get("q") ?? "",
    project: at.get("project") ?? "",
    kind: at.get("kind") ?? "",
    state: at.get("state") ?? "",
  };
  const isFiltered = Object.values(filters).some(Boolean);
  return (
    <Page title={titles.value.memories}>
      <Bar filters={filters} isFiltered={isFiltered} />
      {filters.state === "retired" ? (
        <Retired filters={filters} isFiltered={isFiltered} />
      ) : (
        <Active filters={filters} isFiltered={isFiltered} />
      )}
    </Page>
  );
}

function Bar({ filters, isFiltered }: { filters: Filters; isFiltered: boolean }) {
  return (
    <search class="memories-bar">
      <TextField
        bare
        type="search"
        label={t.value.search}
        placeholder={t.value.search}
        value={filters.words}
        onInput={(event) => setQuery({ q: event.currentTarget.value })}
      />
      <ProjectSelect bare value={filters.project} onPick={(project) => setQuery({ project })} />
      <Select
        bare
        label={t.value.kind}
        value={filters.kind}
        options={[["", t.value.allKinds], ...Object.entries(common.value.kinds)]}
        onPick={(kind) => setQuery({ kind })}
      />
      <Select
        bare
        label={t.value.state}
        value={filters.state}
        options={[
          ["", t.value.active],
          ["retired", t.value.retired],
        ]}
        onPick={(state) => setQuery({ state })}
      />
      {isFiltered && (
        <Button look="quiet" onClick={() => setQuery({ q: "", project: "", kind: "", state: "" })}>
          {t.value.clear}
        </Button>
      )}
    </search>
  );
}

function Active({ filters, isFiltered }: { filters: Filters; isFiltered: boolean }) {
  const found = usePaged(
    "list",
    {
      words: filters.words.trim(),
      filter: {
        projects: filters.project ? [filters.project] : [],
        strict: Boolean(filters.project),
        kinds: filters.kind ? [filters.kind as Kind] : [],
      },
    },
    { rows: (listing) => listing.memories, total: (listing) => listing.total },
  );
  return <Found found={found} isFiltered={isFiltered} />;
}

/** Retired memories are few, so all are listed. */
function Retired({ filters, isFiltered }: { filters: Filters; isFiltered: boolean }) {
  const { data, problem, refresh } = useOperation("retired", {});
  const words = filters.words.toLowerCase().split(/\s+/);
  const rows = (data ?? []).filter(
    (one) =>
      (!filters.project || one.project === filters.project) &&
      (!filters.kind || one.kind === filters.kind) &&
      words.every((word) => `${one.subject} ${one.content} ${one.tags.join(" ")}`.toLowerCase().includes(word)),
  );
  const found: Paged<Memory> = { rows, problem, first: !data && !problem, want: () => {}, refresh };
  return <Found found={found} isFiltered={isFiltered} />;
}

function Found({ found, isFiltered }: { found: Paged<Memory>; isFiltered: boolean }) {
  if (found.first) return <Skeleton lines={12} />;
  if (found.problem && !found.rows.length) return <Failure problem={found.problem} retry={found.refresh} />;
  if (!found.rows.length) {
    if (isFiltered) return <Empty title={t.value.none}>{t.value.noneNote}</Empty>;
    return <Empty title={t.value.empty}>{t.value.emptyNote}</Empty>;
  }
  return (
    <>
      <p class="memories-found" role="status">
        {t.value.found(found.rows.length)}
      </p>
      <List
        label={titles.value.memories}
        items={found.rows}
        keyOf={(one) => one.id}
        height={36}
        onRange={found.want}
        groupOf={({ created }) => dayHeading(created)}
        render={(one) => <MemoryRow memory={one} undated />}
      />
    </>
  );
}
