"""The ``nacre gateway`` commands."""

from __future__ import annotations

import sys
from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nacre import settings as nacre_settings
from nacre.base import environment, ids
from nacre.base.log import Log
from nacre.base.times import shown
from nacre.cli import output
from nacre.cli.command import TEXT, DefaultGroup, Paper, Run, bold, cut, dim, joined, printable
from nacre.cli.options import argument, ask, count, flag, option, perform, short_session, when
from nacre.cli.signals import stopped_by_signals
from nacre.errors import NacreError
from nacre.home import home
from nacre.serve import homes as daemon_homes
from nacre.sessions import search
from nacre.values import gateway as values_gateway
from nacre.values.memory import Face
from nacre.values.session import Trust
from nacre_gateway import conversation, engine

if TYPE_CHECKING:
    from nacre.serve.homes import Homes
    from nacre.sessions.search import Passages
    from nacre.values.gateway import ChatSession, Pairing
    from nacre_gateway.engine import ChannelState, Chat, GatewayState, TerminalChat

# ----------------------------------------------------------------------------
# ``nacre gateway``.


@click.group(
    "gateway",
    cls=DefaultGroup,
    examples=["nacre gateway run", "nacre gateway pair K7QM-2XDP", "nacre gateway sessions"],
)
def gateway(run: Run) -> None:
    """Answer in chats: Telegram, Discord, Slack.

    Channels are configured in config.toml, for example in [gateway.channels.telegram], and the
    model with nacre writer set. Without a command, show the channels, the model and pending messages.
    Exits with 1 if no gateway is running.
    """
    state = ask(run, engine.GatewayState, "gateway-status")
    run.exit_code = 0 if state.running else 1
    run.answer(state, lambda paper: _show_state(paper, state))


def homes_of(run: Run) -> Homes:
    """Create a pool of homes for threads that answer in parallel."""
    settings, environ = run.settings, environment.of_the_owner(run.settings.environ)
    return daemon_homes.Homes(
        lambda: home.open_home(
            replace(nacre_settings.load_settings(settings.home, environ), face=Face.DAEMON)
        ),
        settings.home,
        settings.config,
    )


@gateway.command("run", examples=["nacre gateway run", "nacre gateway run --log"])
@flag("--log", "Write to the home's logs/gateway.log.")
def run_gateway(run: Run, log: bool) -> None:
    """Serve the channels until Ctrl-C.

    With gateway.enabled, the daemon does this. If an answer is interrupted, the next run answers
    the message.
    """
    write = Log(run.settings.home, "gateway").write if log else click.echo

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
        "nacre gateway pair telegram:4711 --remove",
    ],
)
@click.argument("who", required=False, type=TEXT, metavar="[CODE|CHANNEL:ID]")
@option("gateway-pair", "me", "--me")
@flag("--remove", "Revoke the permission of CHANNEL:ID.")
def pair(run: Run, who: str | None, me: bool, remove: bool) -> None:
    """Allow a sender with a pairing code to write to the agent.

    Without an argument, list waiting and approved senders. With --me, the sender is you: those
    messages count as your own words, and answers use your memories.
    """
    if who is None:
        pairings = ask(run, list[values_gateway.Pairing], "gateway-pairings")
        run.answer({"pairings": pairings}, lambda paper: _show_pairings(paper, pairings))
        return
    if remove:
        removed = perform(run, engine.unpair, who=who)
        run.answer({"removed": removed}, lambda paper: paper.line(f"{who} may no longer write."))
        return
    paired = perform(run, engine.pair, who=who, me=me)
    pairing, role = paired.pairing, ", as you" if paired.identity else ""
    message = f"{pairing.name or pairing.sender} may write in {pairing.channel}{role}."
    run.answer(paired, lambda paper: paper.line(message))


@gateway.command(
    "sessions",
    examples=["nacre gateway sessions", "nacre gateway sessions --channel telegram --closed"],
)
@option("gateway-sessions", "channel", "--channel")
@option("gateway-sessions", "closed", "--closed")
@option("gateway-sessions", "limit", "--limit", "-n")
def sessions(run: Run, **fields: Any) -> None:
    """List conversations, most recently used first."""
    chats = ask(run, list[values_gateway.ChatSession], "gateway-sessions", **fields)
    run.answer({"sessions": chats}, lambda paper: _show_sessions(paper, chats))


@gateway.command(
    "show", examples=["nacre gateway show telegram:4711", "nacre gateway show 01a2 -n 50"]
)
@argument("gateway-session", "reference")
@option("gateway-session", "limit", "--limit", "-n")
@flag("--end", "End it: the next message begins a new one, like /new.")
def show(run: Run, reference: str, limit: int, end: bool) -> None:
    """Show the end of a conversation, or end it."""
    if end:
        ended = perform(run, engine.end_chat, reference=reference)
        run.answer(ended, lambda paper: paper.line(f"The conversation with {ended.name} ended."))
        return
    chat = ask(run, engine.Chat, "gateway-session", reference=reference, limit=limit)
    run.answer(chat, lambda paper: _show_chat(paper, chat))


def _show_state(paper: Paper, state: GatewayState) -> None:
    hint = "" if state.running else "  nacre gateway run starts it"
    paper.line(bold("The gateway runs." if state.running else "No gateway runs."), dim(hint))
    answers = "not set: nacre writer set" if state.model == "none" else state.model
    paper.facts((("answers", answers),), indent=2)
    if not state.channels:
        paper.note(
            "No channel is configured (see docs/gateway.md). nacre gateway chat works without channels.",
            indent=2,
        )
    paper.table([_channel_row(channel) for channel in state.channels], indent=2)
    for item in state.waiting:
        text = f"{item.channel}:{item.sender} is waiting: nacre gateway pair {item.code}"
        paper.line(text, dim(f"  named {item.name}" * bool(item.name)), indent=2)
    for part in state.undelivered:
        verb = "was given up" if part.state == "failed" else "waits"
        paper.line(f"An answer to {part.key} {verb}: {part.problem}", indent=2)


def _channel_row(state: ChannelState) -> tuple[str, str, str]:
    traffic = state.traffic
    status = state.problem or (
        "off" if not state.enabled else f"{count(traffic.waiting, 'message')} waiting"
    )
    counts = (
        (traffic.sent, "sent"),
        (traffic.sending, "being sent"),
        (traffic.failed, "failed"),
        (traffic.doubled, "perhaps twice"),
    )
    return state.name, status, ", ".join(f"{number:,} {name}" for number, name in counts if number)


def _show_pairings(paper: Paper, pairings: list[Pairing]) -> None:
    if not pairings:
        paper.note("No sender is waiting or approved. A new sender gets a code for you.")
    paper.table(
        [
            (
                f"{pairing.channel}:{pairing.sender}",
                pairing.name,
                f"since {when(pairing.approved)}" if pairing.approved else pairing.code,
            )
            for pairing in pairings
        ]
    )


def _show_sessions(paper: Paper, chats: list[ChatSession]) -> None:
    if not chats:
        paper.note("No conversations yet.")
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
            for session in chats
        ]
    )


def _show_chat(paper: Paper, chat: Chat) -> None:
    paper.line(bold(chat.session.name), dim(f"  {chat.session.key}"))
    for message in chat.messages:
        speaker = {"assistant": "agent", "failure": "no answer"}.get(message.role, message.name)
        paper.line(bold(speaker), dim(f"  {message.at[:16].replace('T', ' ')}"))
        paper.body(message.text, indent=2)
    if chat.waiting:
        paper.note(f"{count(len(chat.waiting), 'message')} waiting")
    if chat.is_answering:
        paper.note("An answer is in progress.")


# ----------------------------------------------------------------------------
# ``nacre gateway chat``.


_GREETING_MESSAGES = 4
_EXIT_COMMANDS = ("/exit", "/quit", "/bye")
_NEW_COMMANDS = ("/new", "/reset")
_PROMPT = "> "
_WAIT_MARK, _ERASE_MARK = "…", "\r \r"
"""Mark shown while waiting for an answer, and the characters that erase it."""
_RETRY_NOTICE = "Your message is kept and sent with the next one."


@gateway.command(
    "chat",
    examples=[
        "nacre gateway chat",
        'nacre gateway chat "what did we decide about uploads?"',
        "git diff | nacre gateway chat -",
    ],
)
@click.argument("message", nargs=-1, type=TEXT)
@click.option(
    "--model",
    type=TEXT,
    default="",
    help="The model that answers (provider:model); default: the writer.",
)
@flag("--new", "Begin a new conversation. Otherwise the last one continues for four hours.")
def chat(run: Run, message: tuple[str, ...], model: str, new: bool) -> None:
    """Talk to an agent that remembers.

    The conversation is a session that you can search and that nacre learns from. With MESSAGE, the
    agent answers once. - also reads standard input, which does not count as your words. /new begins
    another conversation, /exit ends it.
    """
    conversation.check_model(run.settings, model)
    text = " ".join(item for item in message if item != "-")
    piped = sys.stdin.read() if "-" in message else ""
    run.keeps_history = False
    homes = homes_of(run)
    talk = engine.TerminalChat(
        run.settings,
        homes.lent,
        model=model,
        is_owner=not run.settings.actor.is_agent,
    )
    with closing(homes), closing(talk):
        if talk.number > 1:
            run.tell("Another nacre gateway chat is open: this is a separate conversation.")
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
        run.answer(
            {"session": talk.session.id, "answer": answer},
            lambda paper: paper.verbatim(answer.text),
        )
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
        if text in _EXIT_COMMANDS:
            return
        if text in _NEW_COMMANDS:
            talk.begin()
            run.tell("A new conversation.")
        elif text:
            try:
                _show(talk, text)
            except NacreError as error:
                click.echo(_ERASE_MARK, nl=False)
                run.tell(f"No answer: {error.with_hint}")
                run.tell(_RETRY_NOTICE)
            except KeyboardInterrupt:
                click.echo(f"{_ERASE_MARK}Stopped.")
                run.tell(_RETRY_NOTICE)


def _show(talk: TerminalChat, text: str, piped: str = "") -> None:
    click.echo(_WAIT_MARK, nl=False)
    click.echo(f"{_ERASE_MARK}{printable(talk.ask(text, piped=piped).text)}\n")


def _greet(paper: Paper, talk: TerminalChat) -> None:
    paper.line(
        bold("Talk to an agent that remembers."),
        dim("  /new starts a new conversation, /exit ends"),
    )
    for message in talk.last_messages(_GREETING_MESSAGES):
        speaker = "it " if message.role == "assistant" else "you"
        paper.note(f"{speaker}  {message.text[:200]}", hang=5)


# ----------------------------------------------------------------------------
# ``nacre gateway search``.


@gateway.command(
    "search",
    examples=[
        'nacre gateway search "which oil does the tractor take"',
        "nacre gateway search boat house key --channel telegram --since march",
    ],
)
@click.argument("question", nargs=-1, required=True, type=TEXT)
@option("search-chats", "limit", "--limit", "-n")
@option("search-chats", "channel")
@option(
    "search-chats", "session", help="Only this conversation (telegram:5054) or session (its id)."
)
@option("search-chats", "since", "until")
def search_chats(run: Run, question: tuple[str, ...], **fields: Any) -> None:
    """Search the conversations of channels."""
    result = ask(run, search.Passages, "search-chats", query=" ".join(question), **fields)
    run.answer(result, lambda paper: _render_passages(paper, result))


def _render_passages(paper: Paper, result: Passages) -> None:
    if not result.passages:
        paper.line(bold("No channel conversation matches. Try other words."))
    for rank, passage in enumerate(result.passages, start=1):
        tool, _, native = passage.session.partition(":")
        place = joined(
            (
                passage.key,
                f"{tool} {short_session(native)}",
                when(passage.time),
                f"{passage.score:.2f}",
            )
        )
        paper.line(bold(f"{rank:>2}"), "  ", dim(place), hang=4)
        if passage.trust is Trust.UNTRUSTED:
            paper.framed(passage.text, f"from {passage.key}", indent=4)
        else:
            paper.body(passage.text, indent=4)
        paper.blank()
