import type { SessionView, StoredTurn } from "../../api/types";
import { nameOf } from "./figures";
import { t } from "./strings";

/** Return a session as Markdown, with outside text as labelled quotations. */
export function asMarkdown({ session, opening, turns }: SessionView): string {
  const { tool, branch, started } = session.session;
  const facts = [tool, session.project, branch, started?.slice(0, 16).replace("T", " ")].filter(Boolean);
  return [`# ${nameOf(session.session, opening)}`, `*${facts.join(" · ")}*`, ...turns.map(said), ""].join("\n\n");
}

function said({ turn }: StoredTurn): string {
  const isOutside = turn.trust === "untrusted";
  const who = turn.author ?? t.value.speakers[turn.speaker];
  const heading = `## ${who}${isOutside ? ` (${t.value.outside})` : ""}`;
  const calls = turn.tool_calls.map(
    ({ name, input, outcome }) => `- ${name}: ${code(input)}${outcome ? ` → ${outcome}` : ""}`,
  );
  return [heading, isOutside ? quoted(turn.text) : below(turn.text), calls.join("\n")].filter(Boolean).join("\n\n");
}

function quoted(text: string): string {
  return text.replace(/^/gm, "> ");
}

/** Put headings of the text below the turn's heading, except in fenced code. */
function below(text: string): string {
  let isFenced = false;
  const line = (one: string) => {
    if (/^ {0,3}(```|~~~)/.test(one)) isFenced = !isFenced;
    return isFenced ? one : one.replace(/^#{1,4}(?= )/, "##$&");
  };
  return text.split("\n").map(line).join("\n");
}

function code(text: string): string {
  const fence = text.includes("`") ? "``" : "`";
  return `${fence}${text.replace(/\s+/g, " ")}${fence}`;
}
