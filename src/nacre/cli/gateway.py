"""Being told to end: by Ctrl-C, by the system, by whoever started this."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import click
import msgspec

from nacre import settings as nacre_settings
from nacre.base import environment, ids
from nacre.base.lazy import load
from nacre.base.text import one_line
from nacre.base.times import shown
from nacre.care import watcher as watching_log
from nacre.cli import output
from nacre.cli.command import (
    TEXT,
    DefaultGroup,
    Paper,
    Run,
    bold,
    command,
    cut,
    dim,
    printable,
    unsteered,
)
from nacre.cli.operations import ask, perform
from nacre.cli.options import Record, argument, count, option, stamp, when
from nacre.errors import NacreError
from nacre.gateway import engine
from nacre.home import home
from nacre.serve import events as event_bus
from nacre.serve import homes as daemon_homes
from nacre.values.memory import Face

if TYPE_CHECKING:
    from nacre.care.watcher import WatchEvent
    from nacre.gateway.engine import ChannelState, Chat, GatewayState, Paired, TerminalChat
    from nacre.serve.events import Event
    from nacre.serve.homes import Homes
    from nacre.values.gateway import Answer, ChatSession, Pairing

_SIGNALS = ("SIGTERM", "SIGINT", "SIGBREAK", "SIGHUP")


def stopped_by_signals() -> threading.Event:
    """An event that is set when this process is told to end. Call in the main thread.

    A handler of signals must not set it: it may interrupt the main thread while that holds the event's own lock, and
    would wait for it for ever. So it leaves word, and another thread sets the event.
    """
    stop = threading.Event()
    told: SimpleQueue[None] = SimpleQueue()

    def wait() -> None:
        told.get()
        stop.set()

    threading.Thread(target=wait, daemon=True, name="signals").start()
    for name in _SIGNALS:
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), lambda *_: told.put(None))
    return stop


# ----------------------------------------------------------------------------
# ``nacre gateway``.


_CELLS = 60


@click.group(
    "gateway",
    cls=DefaultGroup,
    places={"chat": "gateway:chat", "search": "work:search_chats"},
    examples=["nacre gateway run", "nacre gateway pair K7QM-2XDP", "nacre gateway sessions"],
)
@click.pass_context
def gateway(ctx: click.Context) -> None:
    """Answer in chats: Telegram, Discord, Slack, WhatsApp, webhooks.

    Channels are set in config.toml, as [gateway.channels.telegram], and the model that answers as models.chat. Without
    a command it shows the channels, the model and pending messages, and exits with 1 if no gateway runs.
    """
    if not ctx.invoked_subcommand:
        run: Run = ctx.obj
        state: GatewayState = ask(run, "gateway-status")
        run.exit_code = 0 if state.running else 1
        run.answer(_state_record(state), lambda paper: _show_state(paper, state))


def homes_of(run: Run) -> Homes:
    """Open homes for threads that answer side by side."""
    settings, environ = run.settings, environment.of_the_owner(run.settings.environ)
    return daemon_homes.Homes(
        lambda: home.open_home(
            replace(nacre_settings.load_settings(settings.home, environ), face=Face.DAEMON)
        ),
        settings.home,
        settings.config,
    )


@gateway.command("run", examples=["nacre gateway run", "nacre gateway run --log"])
@click.option("--log", is_flag=True, help="Write into the home's logs/gateway.log instead of here.")
@click.pass_obj
def run_gateway(run: Run, log: bool) -> None:
    """Serve the channels until Ctrl-C.

    The daemon does it by itself where gateway.enabled is set. What is being answered as it ends is answered when it
    runs again; nothing is lost.
    """
    write = watching_log.Log(run.settings.home, "gateway").write if log else click.echo

    def tell(line: str) -> None:
        with suppress(OSError):
            write(
                printable(
                    f"{shown(ids.utc_now(), '%H:%M:%S')}  {output.redactor_of(run).clean(line)}"
                )
            )

    run.settings.actor.require_owner("nacre gateway run")
    run.keeps_history = False
    with closing(homes_of(run)) as homes:
        engine.serve(run.settings, homes.lent, tell, stopped_by_signals())


@gateway.command(
    "pair",
    examples=[
        "nacre gateway pair",
        "nacre gateway pair K7QM-2XDP --me",
        "nacre gateway pair telegram:4711",
    ],
)
@click.argument("who", required=False, type=TEXT, metavar="[CODE|CHANNEL:ID]")
@option("gateway-pair", "me", "--me")
@click.pass_obj
def pair(run: Run, who: str | None, me: bool) -> None:
    """Allow a sender to write to the agent, by their pairing code.

    Without an argument it lists who asks, and who was let in. With --me it is you: what you say there counts as your
    own words, and your answers draw on your memories.
    """
    if who is None:
        found: list[Pairing] = ask(run, "gateway-pairings")
        run.answer(
            {"pairings": [_pairing_record(pairing) for pairing in found]},
            lambda paper: _show_pairings(paper, found),
        )
        return
    paired: Paired = perform(run, "gateway-pair", who=who, me=me)
    one = paired.pairing
    told = f"{one.name or one.sender} may write in {one.channel}" + (
        ", as you." if paired.identity else "."
    )
    run.answer(
        {**_pairing_record(one), "identity": paired.identity}, lambda paper: paper.line(told)
    )


@gateway.command("unpair", examples=["nacre gateway unpair telegram:4711"])
@argument("gateway-unpair", "who", metavar="CHANNEL:ID")
@click.pass_obj
def unpair(run: Run, who: str) -> None:
    """Withdraw a sender's permission to write."""
    perform(run, "gateway-unpair", who=who)
    run.answer({"unpaired": who}, lambda paper: paper.line(f"{who} may write no more."))


@gateway.command(
    "sessions",
    examples=["nacre gateway sessions", "nacre gateway sessions --channel telegram --closed"],
)
@option("gateway-sessions", "channel", "--channel")
@option("gateway-sessions", "closed", "--closed")
@option("gateway-sessions", "limit", "--limit", "-n")
@click.pass_obj
def sessions(run: Run, channel: str | None, closed: bool, limit: int) -> None:
    """List conversations, most recently used first."""
    found: list[ChatSession] = ask(
        run, "gateway-sessions", channel=channel, closed=closed, limit=limit
    )
    run.answer(
        {"sessions": [_session_record(session) for session in found]},
        lambda paper: _show_sessions(paper, found),
    )


@gateway.command(
    "show", examples=["nacre gateway show telegram:4711", "nacre gateway show 01a2 -n 50"]
)
@argument("gateway-session", "reference")
@option("gateway-session", "limit", "--limit", "-n")
@click.pass_obj
def show(run: Run, reference: str, limit: int) -> None:
    """Show the end of a conversation."""
    found: Chat = ask(run, "gateway-session", reference=reference, limit=limit)
    run.answer(_chat_record(found), lambda paper: _show_chat(paper, found))


@gateway.command("end", examples=["nacre gateway end telegram:4711"])
@argument("gateway-end", "reference")
@click.pass_obj
def end(run: Run, reference: str) -> None:
    """End a conversation: the next message begins a new one.

    In the chat itself /new does it.
    """
    found: ChatSession = perform(run, "gateway-end", reference=reference)
    run.answer(
        _session_record(found),
        lambda paper: paper.line(f"The conversation with {found.name} ended."),
    )


def _state_record(state: GatewayState) -> dict[str, Any]:
    return {
        "running": state.running,
        "model": state.model,
        "channels": [
            {
                "name": channel.name,
                "kind": channel.kind,
                "enabled": channel.enabled,
                "problem": channel.problem or None,
                "waiting": channel.traffic.waiting,
                "sending": channel.traffic.sending,
                "sent": channel.traffic.sent,
                "failed": channel.traffic.failed,
                "doubled": channel.traffic.doubled,
            }
            for channel in state.channels
        ],
        "pairings": [_pairing_record(item) for item in state.waiting],
        "undelivered": [
            {
                "channel": item.channel,
                "key": item.key,
                "state": item.state,
                "problem": item.problem,
                "created": stamp(item.created),
                "attempts": item.attempts,
            }
            for item in state.undelivered
        ],
    }


def _show_state(paper: Paper, state: GatewayState) -> None:
    hint = "" if state.running else "  nacre gateway run starts it"
    paper.line(bold("The gateway runs." if state.running else "No gateway runs."), dim(hint))
    answers = (
        "nobody yet: nacre config set models.chat claude-cli:"
        if state.model == "none"
        else state.model
    )
    paper.facts((("answers", answers),), indent=2)
    if not state.channels:
        paper.line(
            dim(
                "No channel is configured: docs/gateway.md tells how. nacre gateway chat works without one."
            ),
            indent=2,
        )
    paper.table([_channel_row(channel) for channel in state.channels], indent=2)
    for item in state.waiting:
        asks = f"{item.channel}:{item.sender} asks: nacre gateway pair {item.code}"
        paper.line(asks, dim(f"  they call themselves {item.name}" * bool(item.name)), indent=2)
    for lost in state.undelivered:
        verb = "was given up" if lost.state == "failed" else "waits"
        paper.line(f"An answer to {lost.key} {verb}: {lost.problem}", indent=2)


def _channel_row(state: ChannelState) -> tuple[str, str, str]:
    traffic = state.traffic
    told = state.problem or (
        "off" if not state.enabled else f"{count(traffic.waiting, 'message')} waiting"
    )
    sent = [f"{traffic.sent:,} sent"] if traffic.sent else []
    sent += [f"{traffic.sending:,} being sent"] if traffic.sending else []
    sent += [f"{traffic.failed:,} failed"] if traffic.failed else []
    sent += [f"{traffic.doubled:,} perhaps twice"] if traffic.doubled else []
    return state.name, told, ", ".join(sent)


def _pairing_record(pairing: Pairing) -> dict[str, Any]:
    return {
        "channel": pairing.channel,
        "sender": pairing.sender,
        "name": pairing.name,
        "code": pairing.code if not pairing.approved else None,
        "asked": stamp(pairing.asked),
        "approved": stamp(pairing.approved),
    }


def _show_pairings(paper: Paper, found: list[Pairing]) -> None:
    if not found:
        paper.line(
            dim(
                "Nobody asks, and nobody was let in. Who writes to the agent is given a code for you."
            )
        )
    paper.table(
        [
            (
                f"{pairing.channel}:{pairing.sender}",
                pairing.name,
                f"since {when(pairing.approved)}" if pairing.approved else pairing.code,
            )
            for pairing in found
        ]
    )


def _session_record(session: ChatSession) -> dict[str, Any]:
    return {
        "id": session.id,
        "key": session.key,
        "channel": session.chat.channel,
        "kind": session.chat.kind.value,
        "name": session.name,
        "created": stamp(session.created),
        "updated": stamp(session.updated),
        "closed": stamp(session.closed),
        "messages": session.messages,
        "compactions": session.compactions,
        "input_tokens": session.input_tokens,
        "output_tokens": session.output_tokens,
        "cost_usd": session.cost,
    }


def _show_sessions(paper: Paper, found: list[ChatSession]) -> None:
    if not found:
        paper.line(dim("No conversations yet."))
    paper.table(
        [
            (
                session.id[:13],
                cut(session.name, 24),
                session.key,
                count(session.messages, "message"),
                when(session.updated),
                f"${session.cost:.2f}" if session.cost else "",
            )
            for session in found
        ]
    )


def _chat_record(found: Chat) -> dict[str, Any]:
    messages = [
        {
            "role": message.role,
            "text": message.text,
            "name": message.name or None,
            "at": message.at,
            "owner": message.is_owner,
        }
        for message in found.messages
    ]
    return {
        **_session_record(found.session),
        "summary": found.summary or None,
        "path": found.path,
        "said": messages,
        "waiting": len(found.waiting),
        "answering": found.is_answering,
    }


def _show_chat(paper: Paper, found: Chat) -> None:
    paper.line(bold(found.session.name), dim(f"  {found.session.key}"))
    if found.summary:
        paper.line(dim(f"before: {cut(one_line(found.summary), _CELLS * 3)}"), hang=8)
    for message in found.messages:
        who = {"assistant": "agent", "failure": "no answer"}.get(message.role, message.name)
        paper.line(bold(who), dim(f"  {message.at[:16].replace('T', ' ')}"))
        paper.body(message.text, indent=2)
    if found.waiting:
        paper.line(dim(f"{count(len(found.waiting), 'message')} waiting"))
    if found.is_answering:
        paper.line(dim("An answer is being made."))


# ----------------------------------------------------------------------------
# ``nacre gateway chat``.


_SHOWN = 4
_LEAVES = ("/exit", "/quit", "/bye")
_BEGINS = ("/new", "/reset")
_PROMPT = "> "
_WAITS, _WIPED = "…", "\r \r"
"""Shown until the answer begins."""
_OTHERS = "Another nacre gateway chat is open: this one is a conversation of its own."
_KEPT = "What you said is kept, and goes with your next message."


@command(
    "chat",
    examples=[
        "nacre gateway chat",
        'nacre gateway chat "what did we decide about uploads?"',
        "git diff | nacre gateway chat -",
    ],
)
@click.argument("message", nargs=-1, type=TEXT)
@click.option(
    "--model", type=TEXT, default="", help="Who answers (provider:model); else models.chat."
)
@click.option(
    "--new",
    is_flag=True,
    help="Begin a new conversation; else the last one goes on for four hours.",
)
@click.pass_obj
def chat(run: Run, message: tuple[str, ...], model: str, new: bool) -> None:
    """Talk to an agent that remembers.

    What you say and what it answers is a session like any other: searchable, and a source of memories. With MESSAGE it
    answers once; - reads standard input, too, as words that are not yours. In a conversation, /new begins another one
    and /exit ends it.
    """
    text = " ".join(item for item in message if item != "-")
    piped = sys.stdin.read() if "-" in message else ""
    run.keeps_history = False
    homes = homes_of(run)
    talk = engine.TerminalChat(
        run.settings,
        homes.lent,
        load("nacre.gateway.conversation:responder_for"),
        model=model,
        is_owner=not run.settings.actor.is_agent,
    )
    with closing(homes), closing(talk):
        if talk.number > 1:
            run.tell(_OTHERS)
        if new:
            talk.begin()
        if (text + piped).strip():
            _answer_once(run, talk, text, piped)
        elif run.is_interactive and sys.stdout.isatty() and not run.as_json:
            _converse(run, talk)
        else:
            raise click.UsageError("not interactive: pass MESSAGE, or - for standard input")


def _answer_once(run: Run, talk: TerminalChat, text: str, piped: str) -> None:
    if run.as_json or not sys.stdout.isatty():
        answer = talk.ask(text, piped=piped)
        run.answer(_record(talk, answer), lambda paper: paper.verbatim(answer.text))
        return
    _show(talk, text, piped)


def _converse(run: Run, talk: TerminalChat) -> None:
    run.show(lambda paper: _greet(paper, talk))
    while True:
        try:
            text = input(_PROMPT).strip()
        except EOFError:
            click.echo()
            return
        if text in _LEAVES:
            return
        if text in _BEGINS:
            talk.begin()
            run.tell("A new conversation.")
        elif text:
            _try(run, talk, text)


def _try(run: Run, talk: TerminalChat, text: str) -> None:
    try:
        _show(talk, text)
    except NacreError as error:
        click.echo(_WIPED, nl=False)
        run.tell(f"No answer: {error.message}" + (f" ({error.hint})" if error.hint else ""))
        run.tell(_KEPT)
    except KeyboardInterrupt:
        click.echo(f"{_WIPED}Stopped.")
        run.tell(_KEPT)


def _show(talk: TerminalChat, text: str, piped: str = "") -> None:
    """Print an answer as it comes."""
    heard: list[str] = []

    def hear(piece: str) -> None:
        click.echo(("" if heard else _WIPED) + printable(piece), nl=False)
        heard.append(piece)

    click.echo(_WAITS, nl=False)
    answer = talk.ask(text, hear, piped=piped)
    rest = "" if heard else _WIPED + printable(answer.text)
    click.echo(f"{rest}\n")


def _greet(paper: Paper, talk: TerminalChat) -> None:
    said = talk.said(_SHOWN)
    paper.line(bold("Talk to an agent that remembers."), dim("  /new begins anew, /exit ends"))
    for role, text in said:
        paper.line(dim(f"{'it ' if role == 'assistant' else 'you'}  {text[:200]}"), hang=5)


def _record(talk: TerminalChat, answer: Answer) -> dict[str, object]:
    return {
        "session": talk.session.id,
        "answer": answer.text,
        "model": answer.model,
        "tokens": {"input": answer.input_tokens, "output": answer.output_tokens},
        "cost_usd": answer.cost,
    }


# ----------------------------------------------------------------------------
# What the watcher tells: one event, as JSON and as a line.


def event_record(event: WatchEvent) -> Record:
    """One line of ``watch``."""
    return {
        "event": event.kind,
        "time": stamp(event.time),
        "files": event.files,
        "turns": event.turns,
        "memories": event.memories,
        "vectors": {"made": event.vectors_made, "left": event.vectors_left},
        "tools": dict(event.tools),
        "folders": event.folders,
        "mode": event.mode,
        "path": event.path,
        "message": event.note,
        "hint": event.hint,
    }


def event_line(event: WatchEvent, *, with_day: bool = False) -> str:
    """An event in one line."""
    at = shown(event.time, "%Y-%m-%d %H:%M:%S" if with_day else "%H:%M:%S")
    return f"{at}  {_WORDS[event.kind](event)}"


def _started(event: WatchEvent) -> str:
    how = f"by looking again and again, for {event.note}" if event.note else "as they are written"
    return f"following the sessions in {count(event.folders, 'folder')} {how}; Ctrl-C ends it"


def _read(event: WatchEvent) -> str:
    tools = ", ".join(event.tools) or count(event.files, "transcript")
    return f"read {count(event.turns, 'turn')} of {tools}"


def _learned(event: WatchEvent) -> str:
    parts = [f"learned {count(event.memories, 'memory', 'memories')}"] if event.memories else []
    if event.vectors_made:
        left = f", {event.vectors_left:,} texts wait" if event.vectors_left else ""
        parts.append(f"made {count(event.vectors_made, 'vector')}{left}")
    return "; ".join(parts)


def _problem(event: WatchEvent) -> str:
    where = f"{event.path}: " if event.path else ""
    return f"problem: {where}{event.note}" + (f" ({event.hint})" if event.hint else "")


_WORDS: dict[str, Callable[[WatchEvent], str]] = {
    "started": _started,
    "read": _read,
    "learned": _learned,
    "mode": lambda event: (
        f"looking again and again from now on: {event.note}" if event.note else "listening again"
    ),
    "problem": _problem,
    "stopped": lambda event: (
        f"stopped after {event.turns:,} turns and {count(event.memories, 'memory', 'memories')}"
    ),
}


# ----------------------------------------------------------------------------
# ``nacre admin events``.


_WAIT_SECONDS = 0.5
_MOST_SHOWN = 5
_CELLS_LIVE_EVENTS = 72


@command(
    "events",
    examples=["nacre admin events", "nacre admin events --json | grep --line-buffered stored"],
)
@click.pass_obj
def events(run: Run) -> None:
    """Print changes in the home as they happen.

    Whatever changed it: a command, an agent, the daemon, an editor once nacre has read the file. No daemon is needed.
    With --json it prints one object for each event, each on a line of its own (docs/events.md). It runs until Ctrl-C.
    """
    stop, woken = stopped_by_signals(), threading.Event()
    live = event_bus.Live(lambda: home.open_home(run.settings), event_bus.Bus(ids.utc_now))
    looking = threading.Thread(target=live.run, args=(stop,), daemon=True, name="looking")
    looking.start()
    live.wait_ready()
    listener = live.bus.listen(woken.set)
    run.keeps_history = False
    while not stop.is_set():
        woken.clear()
        found = listener.take()
        for event in found:
            _tell(run, event)
        if not found:
            woken.wait(_WAIT_SECONDS)
    looking.join()


def _tell(run: Run, event: Event) -> None:
    if run.as_json:
        click.echo(unsteered(event.data.decode()))
        return
    told: dict[str, Any] = msgspec.json.decode(event.data)
    for line in _LINES[event.kind](run, told) if event.kind in _LINES else ():
        click.echo(printable(f"{shown(ids.utc_now(), '%H:%M:%S')}  {line}"))


def _memories(run: Run, told: dict[str, Any]) -> list[str]:
    if told["total"] > _MOST_SHOWN:
        return [f"{told['change']}: {told['total']:,} memories"]
    with closing(home.open_home(run.settings)) as opened:  # the database may be another one by now
        subjects = {
            memory.id: memory.subject for memory in opened.memories.in_any_state(told["ids"])
        }
    return [
        f"{told['change']}: {cut(one_line(subjects.get(item, 'a memory')), _CELLS_LIVE_EVENTS)}  {item[-8:]}"
        for item in told["ids"]
    ]


def _session(_: Run, told: dict[str, Any]) -> list[str]:
    return [
        f"session {told['id']}: {count(told['turns'], 'turn')}"
        if told["id"]
        else "and more sessions"
    ]


def _chat(_: Run, told: dict[str, Any]) -> list[str]:
    where = told["key"] or told["channel"]
    return [f"chat {where}: {_CHATS.get(told['change'], told['change'])}"]


_CHATS = {
    "grew": "there are new messages",
    "ended": "it ended",
    "waiting": "a message waits",
    "answering": "an answer is being made",
    "pairing": "who may write, or asks to, changed",
    "undelivered": "what could not be delivered changed",
}

_LINES: dict[str, Callable[[Run, dict[str, Any]], list[str]]] = {
    "hello": lambda _, __: ["listening; Ctrl-C ends it"],
    "missed": lambda _, __: ["the database was replaced: anything may have changed"],
    "memory": _memories,
    "session": _session,
    "chat": _chat,
    "candidate": lambda _, told: [f"{count(told['waiting'], 'candidate')} to review"],
    "doubt": lambda _, told: [
        f"{count(told['total'], 'memory', 'memories')} in doubt, or in doubt no more"
    ],
    "cost": lambda _, told: [
        f"{told['task']}: ${told['usd']:.4f} today, ${told['today_usd']:.4f} in all"
    ],
}
