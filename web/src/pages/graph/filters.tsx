import { useOperation } from "../../api/cache";
import { query, setQuery } from "../../app/router";
import { Select } from "../../ui/controls";
import { t } from "./strings";

/** The kinds of connections: links, or a common session, file or tag. */
export const CONNECTIONS = ["link", "session", "file", "tag"] as const;

/** The project, and the kind of connections. */
export function Filters() {
  const projects = useOperation("project-list", {});
  const asked = query.value;
  return (
    <div class="graph-filters">
      <Select
        bare
        label={t.value.project}
        value={asked.get("project") ?? ""}
        options={[
          ["", t.value.allProjects],
          ...(projects.data ?? []).map((one) => [one.slug, one.name || one.slug] as const),
        ]}
        onPick={(project) => setQuery({ project })}
      />
      <Select
        bare
        label={t.value.edges}
        value={asked.get("edges") ?? ""}
        options={[["", t.value.allEdges], ...CONNECTIONS.map((one) => [one, t.value.connections[one]] as const)]}
        onPick={(edges) => setQuery({ edges })}
      />
    </div>
  );
}
