import { useOperation } from "../../api/cache";
import type { SessionLine } from "../../api/types";
import { Section } from "../../ui/layout";
import { Resume } from "../../ui/resume";
import { Show } from "../../ui/states";
import { Text } from "../../ui/text";
import { Time } from "../../ui/time";
import { headingOf, idOf, nameOf, to } from "../session/figures";
import type { Today } from "./page";
import { t } from "./strings";

export const LATEST = { limit: 6 };

/** The latest sessions, each with the command that resumes it. */
export function Sessions({ today }: { today: Today }) {
  const latest = useOperation("sessions", LATEST, { on: ["session"] });
  const tools = today.tools.map(({ tool, sessions }) => t.value.from(tool, sessions));
  const more = (
    <a class="link" href="/sessions">
      {t.value.allSessions}
    </a>
  );
  return (
    <Section title={t.value.sessions} note={tools.join(" · ")} actions={more}>
      <Show of={latest}>
        {({ lines }) => (
          <ul>
            {!lines.length && <li class="faint">{t.value.noSessions}</li>}
            {lines.map((line) => (
              <li key={line.session.row}>
                <Row line={line} />
              </li>
            ))}
          </ul>
        )}
      </Show>
    </Section>
  );
}

function Row({ line: { session: stored, opening } }: { line: SessionLine }) {
  const { session, project, turns, ended } = stored;
  const at = ended ?? session.started;
  return (
    <div class="today-session">
      <a class="clip" href={to(session)} dir="auto">
        <Text>{headingOf(session, opening)}</Text>
      </a>
      <span class="clip faint today-session-facts">
        <Text>{[session.tool, project, t.value.turns(turns)].filter(Boolean).join(" · ")}</Text>
        {at && (
          <>
            {" · "}
            <Time at={at} />
          </>
        )}
      </span>
      {session.kind === "main" && session.tool !== "nacre-chat" && (
        <Resume id={idOf(session)} name={nameOf(session, opening)} />
      )}
    </div>
  );
}
