import { useOperation } from "../api/cache";
import { common } from "../i18n/common";
import { Select } from "./controls";

/** A selection of one project or all, including the address's project before the projects are loaded. */
export function ProjectSelect(props: { bare?: boolean; value: string; onPick: (project: string) => void }) {
  const known = useOperation("place", {}, { on: ["session"] }).data?.known ?? [];
  const projects = props.value && !known.includes(props.value) ? [props.value, ...known] : known;
  return (
    <Select
      {...props}
      label={common.value.project}
      options={[["", common.value.allProjects], ...projects.map((one) => [one, one] as const)]}
    />
  );
}
