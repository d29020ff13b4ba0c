// Made of host-plugins/src/opencode.ts: change that, and run npm run build there.
/** nacre's plugin for OpenCode: context as parts of the person's message, and events at the end of sessions. */
import { isObject, Link, messageOf, readPlace, text, there, userFolder, wait } from "./nacre/link.js";
const START_MS = 1_500;
const PROMPT_MS = 150;
const LOOK_UP_MS = 100;
const MOST_SESSIONS = 1_000;
const CHARACTERS = 6_000;
export const NacrePlugin = async ({ directory, client }) => {
    if (process.env.NACRE_OWN_CALL)
        return {};
    const log = (message) => process.env.NACRE_DEBUG && console.error(message);
    const place = readPlace(import.meta.url);
    const link = new Link(place, { name: "opencode", tool: "opencode", log });
    const sessions = new Map();
    const remember = (id, session) => {
        sessions.delete(id);
        sessions.set(id, session);
        if (sessions.size > MOST_SESSIONS)
            sessions.delete(sessions.keys().next().value);
        return session;
    };
    /** A session from before this process: resumed, unless it is a sub-agent's. */
    const lookUp = async (id) => {
        const asked = Promise.resolve(client?.session?.get?.({ path: { id } })).catch(() => undefined);
        const told = await Promise.race([asked, wait(LOOK_UP_MS)]);
        const info = isObject(told) && isObject(told.data) ? told.data : {};
        return sessions.get(id) ?? remember(id, { isApart: Boolean(info.parentID), occasion: "resume", isOpen: true });
    };
    const callOf = (id) => {
        const transcript = there(process.env.XDG_DATA_HOME || userFolder(".local", "share"), "opencode", "opencode.db");
        return { session: id, ...(directory ? { folder: directory } : {}), ...(transcript ? { transcript } : {}) };
    };
    const note = (event, id, reason = "") => {
        const session = sessions.get(id);
        if (!session || session.isApart || !session.isOpen)
            return;
        if (event === "session-end")
            session.isOpen = false;
        link.note(event, { ...callOf(id), reason });
    };
    const happened = {
        "session.created": (id, { info }) => {
            const isApart = isObject(info) && Boolean(info.parentID);
            remember(id, { isApart, occasion: "startup", isOpen: false });
        },
        "session.compacted": (id) => {
            const session = sessions.get(id);
            if (session)
                session.occasion = "compact";
        },
        "session.idle": (id) => note("turn-end", id),
        "session.deleted": (id) => {
            note("session-end", id, "deleted");
            sessions.delete(id);
        },
    };
    /** Catch all errors, so that OpenCode continues. */
    const guarded = async (work) => {
        try {
            await work();
        }
        catch (error) {
            link.trouble(messageOf(error));
        }
    };
    return {
        event: ({ event }) => guarded(() => {
            const properties = event.properties ?? {};
            const info = isObject(properties.info) ? properties.info : {};
            const id = text(properties.sessionID) || text(info.id);
            if (id)
                happened[event.type]?.(id, properties);
        }),
        "chat.message": (input, output) => guarded(async () => {
            const id = input.sessionID;
            const session = sessions.get(id) ?? (await lookUp(id));
            if (session.isApart)
                return;
            session.isOpen = true;
            const said = output.parts.filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text ?? "");
            const call = { ...callOf(id), prompt: unquoted(said.join("\n")).slice(0, CHARACTERS) };
            const { occasion } = session;
            session.occasion = undefined;
            const context = occasion
                ? await link.context("session-start", { ...call, occasion }, Math.max(place.patience ?? 0, START_MS))
                : await link.context("prompt", call, place.patience ?? PROMPT_MS);
            if (!context)
                return;
            const last = output.parts.at(-1)?.id ?? "prt_";
            output.parts.push({ id: `${last}nacre`, sessionID: id, messageID: output.message.id, type: "text", text: context, synthetic: true });
        }),
        "experimental.session.compacting": ({ sessionID }) => guarded(() => note("pre-compact", sessionID)),
        dispose: () => guarded(() => {
            for (const id of [...sessions.keys()])
                note("session-end", id, "exit");
        }),
    };
};
/** Remove the quotes that `opencode run` puts around prompts with spaces. */
function unquoted(said) {
    return /^"(?:[^"\\]|\\.)* (?:[^"\\]|\\.)*"$/s.test(said) ? said.slice(1, -1).replaceAll('\\"', '"') : said;
}
