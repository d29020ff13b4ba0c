import { useSignal } from "@preact/signals";
import type { SettingView } from "../../api/types";
import { Select, TextArea, TextField } from "../../ui/controls";
import { t } from "./strings";
import { inWords } from "./wording";

interface ControlProps {
  setting: SettingView;
  off: boolean;
  onSave: (value: unknown) => void;
}

/** The control of a setting: switch, choice, line or lines. Saves on leaving it and on Enter. */
export function Control(props: ControlProps) {
  const { setting, off, onSave } = props;
  const { key, value, form, choices } = setting;
  if (isMasked(setting)) {
    return (
      <>
        <code class="settings-held">{inWords(value)}</code>
        <p class="field-hint">{t.value.masked(setting.origin)}</p>
      </>
    );
  }
  if (form === "switch") return <Switch {...props} />;
  if (choices.length) {
    const options = choices.map((one) => [one, one || t.value.nothing] as const);
    if (off) return <TextField bare label={key} value={inWords(value)} disabled />;
    return <Select bare label={key} value={String(value)} options={options} onPick={onSave} />;
  }
  if (form === "list") return <Lines {...props} />;
  if (form === "table") return <Table {...props} />;
  const isNumber = form !== "text";
  return (
    <TextField
      bare
      label={key}
      class={isNumber ? "settings-number" : undefined}
      inputMode={isNumber ? "decimal" : "text"}
      placeholder={isNumber ? "" : t.value.nothing}
      defaultValue={String(value)}
      disabled={off}
      onChange={(event) => event.currentTarget.value !== String(value) && onSave(event.currentTarget.value)}
    />
  );
}

function Switch({ setting, off, onSave }: ControlProps) {
  const isOn = setting.value === true;
  return (
    <button
      type="button"
      class="settings-switch"
      role="switch"
      aria-checked={isOn}
      aria-label={setting.key}
      disabled={off}
      onClick={() => onSave(!isOn)}
    >
      <span aria-hidden="true" class="settings-knob" />
      {isOn ? t.value.on : t.value.off}
    </button>
  );
}

function Lines({ setting, off, onSave }: ControlProps) {
  const before = (setting.value as string[]).join("\n");
  const rows = Math.min(8, Math.max(1, (setting.value as string[]).length + 1));
  return (
    <TextArea
      bare
      label={setting.key}
      hint={t.value.items}
      rows={rows}
      class="settings-lines"
      defaultValue={before}
      disabled={off}
      onChange={(event) => {
        const after = event.currentTarget.value.split("\n").map((one) => one.trim());
        if (after.join("\n") !== before) onSave(after.filter(Boolean));
      }}
    />
  );
}

/** The entries of a table, and a line to add one. Other entries do not change. */
function Table({ setting, off, onSave }: ControlProps) {
  const added = useSignal("");
  const held = Object.entries(setting.value as Record<string, unknown>);
  return (
    <>
      {held.map(([name, one]) => (
        <code key={name} class="settings-held">
          {name} = {JSON.stringify(one)}
        </code>
      ))}
      {!off && (
        <TextField
          bare
          label={setting.key}
          hint={t.value.table}
          value={added.value}
          onInput={(event) => (added.value = event.currentTarget.value)}
          onChange={() => added.value.trim() && onSave(added.value)}
        />
      )}
    </>
  );
}

/** Return true if a part of the value is hidden; saving it would store the placeholder. */
function isMasked({ value, form, origin }: SettingView): boolean {
  return form !== "table" && origin !== "default" && /…|\[REDACTED:/.test(JSON.stringify(value));
}
