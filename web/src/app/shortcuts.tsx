import { Key } from "../ui/controls";
import { Dialog } from "../ui/dialog";
import { groups } from "./keys";
import { t } from "./strings";

/** The list of keys on this page. */
export function Shortcuts({ onClose }: { onClose: () => void }) {
  return (
    <Dialog title={t.value.shortcuts} onClose={onClose}>
      <div class="shortcuts">
        {groups.value.toReversed().map(({ current }) => (
          <section key={current.title}>
            <h3>{current.title}</h3>
            <dl>
              {current.shortcuts.map(({ keys, says }) => (
                <div key={keys}>
                  <dt>{says}</dt>
                  <dd>
                    {keys.split(", ").map((one) => (
                      <span key={one}>
                        {one.split(/[ +]/).map((key) => (
                          <Key key={key}>{NAMES[key] ?? key}</Key>
                        ))}
                      </span>
                    ))}
                  </dd>
                </div>
              ))}
            </dl>
          </section>
        ))}
      </div>
    </Dialog>
  );
}

const NAMES: Record<string, string> = { arrowdown: "↓", arrowup: "↑", enter: "↵", ctrl: "Ctrl", escape: "Esc" };
