"""``nacre gateway``."""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nacre import settings as nacre_settings
from nacre.cli import crash
from nacre.cli.command import TEXT, DefaultGroup
from nacre.cli.formats import count, stamp, when
from nacre.cli.operations import ask, perform
from nacre.cli.paper import Paper, bold, cut, dim, printable
from nacre.cli.request_options import argument, option
from nacre.cli.run import Run
from nacre.cli.services.signals import stopped_by_signals
from nacre.daemon import homes as daemon_homes
from nacre.gateway import serve
from nacre.home import home
from nacre.platform import environment, ids
from nacre.platform.days import shown
from nacre.text.passages import one_line
from nacre.values.actor import Face
from nacre.watching import log as watching_log

if TYPE_CHECKING:
    from nacre.daemon.homes import Homes
    from nacre.gateway.answers import ChannelState, Chat, GatewayState, Paired
    from nacre.values.gateway.conversation import ChatSession, Pairing

_CELLS = 60


@click.group(
    "gateway", cls=DefaultGroup, places={"search": "sessions.chat_search:search"},
    examples=["nacre gateway run", "nacre gateway pair K7QM-2XDP", "nacre gateway sessions"],
)  # fmt: skip
@click.pass_context
def gateway(ctx: click.Context) -> None:
    """Answer in chats: Telegram, Discord, Slack, WhatsApp, webhooks.

    Channels stand in config.toml, as [gateway.channels.telegram]; models.chat is who answers. Without a command it
    tells how the gateway is.
    """
    if not ctx.invoked_subcommand:
        ctx.invoke(status)


def homes_of(run: Run) -> Homes:
    """Open homes for threads that answer side by side."""
    settings, environ = run.settings, environment.of_the_owner(run.settings.environ)
    return daemon_homes.Homes(
        lambda: home.open_home(replace(nacre_settings.load_settings(settings.home, environ), face=Face.DAEMON)),
        settings.home, settings.config,
    )  # fmt: skip


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
            write(printable(f"{shown(ids.utc_now(), '%H:%M:%S')}  {crash.redactor_of(run).clean(line)}"))

    run.settings.actor.require_owner("nacre gateway run")
    run.keeps_history = False
    with closing(homes_of(run)) as homes:
        serve.serve(run.settings, homes.lent, tell, stopped_by_signals())


@gateway.command("status", examples=["nacre gateway status", "nacre gateway status --json"])
@click.pass_obj
def status(run: Run) -> None:
    """Tell how the gateway is: its channels, who answers, what waits.

    Exits with 1 where no gateway runs.
    """
    state: GatewayState = ask(run, "gateway-status")
    run.exit_code = 0 if state.running else 1
    run.answer(_state_record(state), lambda paper: _show_state(paper, state))


@gateway.command(
    "pair", examples=["nacre gateway pair", "nacre gateway pair K7QM-2XDP --me", "nacre gateway pair telegram:4711"]
)
@click.argument("who", required=False, type=TEXT, metavar="[CODE|CHANNEL:ID]")
@option("gateway-pair", "me", "--me")
@click.pass_obj
def pair(run: Run, who: str | None, me: bool) -> None:
    """Let a sender write to the agent, by the code they were given.

    Without an argument it lists who asks, and who was let in. With --me it is you: what you say there counts as your
    own words, and your answers draw on your memories.
    """
    if who is None:
        found: list[Pairing] = ask(run, "gateway-pairings")
        run.answer({"pairings": [_pairing_record(one) for one in found]}, lambda paper: _show_pairings(paper, found))
        return
    paired: Paired = perform(run, "gateway-pair", who=who, me=me)
    one = paired.pairing
    told = f"{one.name or one.sender} may write in {one.channel}" + (", as you." if paired.identity else ".")
    run.answer({**_pairing_record(one), "identity": paired.identity}, lambda paper: paper.line(told))


@gateway.command("unpair", examples=["nacre gateway unpair telegram:4711"])
@argument("gateway-unpair", "who", metavar="CHANNEL:ID")
@click.pass_obj
def unpair(run: Run, who: str) -> None:
    """Let a sender write no more."""
    perform(run, "gateway-unpair", who=who)
    run.answer({"unpaired": who}, lambda paper: paper.line(f"{who} may write no more."))


@gateway.command("sessions", examples=["nacre gateway sessions", "nacre gateway sessions --channel telegram --closed"])
@option("gateway-sessions", "channel", "--channel")
@option("gateway-sessions", "closed", "--closed")
@option("gateway-sessions", "limit", "--limit", "-n")
@click.pass_obj
def sessions(run: Run, channel: str | None, closed: bool, limit: int) -> None:
    """List the conversations, the one that was used last first."""
    found: list[ChatSession] = ask(run, "gateway-sessions", channel=channel, closed=closed, limit=limit)
    run.answer({"sessions": [_session_record(one) for one in found]}, lambda paper: _show_sessions(paper, found))


@gateway.command("show", examples=["nacre gateway show telegram:4711", "nacre gateway show 01a2 -n 50"])
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
    run.answer(_session_record(found), lambda paper: paper.line(f"The conversation with {found.name} ended."))


def _state_record(state: GatewayState) -> dict[str, Any]:
    return {
        "running": state.running, "model": state.model,
        "channels": [
            {
                "name": one.name, "kind": one.kind, "enabled": one.enabled, "problem": one.problem or None,
                "waiting": one.traffic.waiting, "sending": one.traffic.sending, "sent": one.traffic.sent,
                "failed": one.traffic.failed, "doubled": one.traffic.doubled,
            }
            for one in state.channels
        ],
        "pairings": [_pairing_record(one) for one in state.waiting],
        "undelivered": [
            {"channel": one.channel, "key": one.key, "state": one.state, "problem": one.problem,
             "created": stamp(one.created), "attempts": one.attempts}
            for one in state.undelivered
        ],
    }  # fmt: skip


def _show_state(paper: Paper, state: GatewayState) -> None:
    hint = "" if state.running else "  nacre gateway run starts it"
    paper.line(bold("The gateway runs." if state.running else "No gateway runs."), dim(hint))
    answers = "nobody yet: nacre config set models.chat claude-cli:" if state.model == "none" else state.model
    paper.facts((("answers", answers),), indent=2)
    if not state.channels:
        paper.line(dim("No channel is configured: docs/gateway.md tells how. nacre chat works without one."), indent=2)
    paper.table([_channel_row(one) for one in state.channels], indent=2)
    for one in state.waiting:
        asks = f"{one.channel}:{one.sender} asks: nacre gateway pair {one.code}"
        paper.line(asks, dim(f"  they call themselves {one.name}" * bool(one.name)), indent=2)
    for lost in state.undelivered:
        verb = "was given up" if lost.state == "failed" else "waits"
        paper.line(f"An answer to {lost.key} {verb}: {lost.problem}", indent=2)


def _channel_row(one: ChannelState) -> tuple[str, str, str]:
    traffic = one.traffic
    told = one.problem or ("off" if not one.enabled else f"{count(traffic.waiting, 'message')} waiting")
    sent = [f"{traffic.sent:,} sent"] if traffic.sent else []
    sent += [f"{traffic.sending:,} being sent"] if traffic.sending else []
    sent += [f"{traffic.failed:,} failed"] if traffic.failed else []
    sent += [f"{traffic.doubled:,} perhaps twice"] if traffic.doubled else []
    return one.name, told, ", ".join(sent)


def _pairing_record(one: Pairing) -> dict[str, Any]:
    return {
        "channel": one.channel, "sender": one.sender, "name": one.name, "code": one.code if not one.approved else None,
        "asked": stamp(one.asked), "approved": stamp(one.approved),
    }  # fmt: skip


def _show_pairings(paper: Paper, found: list[Pairing]) -> None:
    if not found:
        paper.line(dim("Nobody asks, and nobody was let in. Who writes to the agent is given a code for you."))
    paper.table([
        (f"{one.channel}:{one.sender}", one.name, f"since {when(one.approved)}" if one.approved else one.code)
        for one in found
    ])  # fmt: skip


def _session_record(one: ChatSession) -> dict[str, Any]:
    return {
        "id": one.id, "key": one.key, "channel": one.chat.channel, "kind": one.chat.kind.value, "name": one.name,
        "created": stamp(one.created), "updated": stamp(one.updated), "closed": stamp(one.closed),
        "messages": one.messages, "compactions": one.compactions, "input_tokens": one.input_tokens,
        "output_tokens": one.output_tokens, "cost_usd": one.cost,
    }  # fmt: skip


def _show_sessions(paper: Paper, found: list[ChatSession]) -> None:
    if not found:
        paper.line(dim("No conversations yet."))
    paper.table([
        (one.id[:13], cut(one.name, 24), one.key, count(one.messages, "message"), when(one.updated),
         f"${one.cost:.2f}" if one.cost else "")
        for one in found
    ])  # fmt: skip


def _chat_record(found: Chat) -> dict[str, Any]:
    messages = [
        {"role": one.role, "text": one.text, "name": one.name or None, "at": one.at, "owner": one.is_owner}
        for one in found.messages
    ]
    return {
        **_session_record(found.session), "summary": found.summary or None, "path": found.path, "said": messages,
        "waiting": len(found.waiting), "answering": found.is_answering,
    }  # fmt: skip


def _show_chat(paper: Paper, found: Chat) -> None:
    paper.line(bold(found.session.name), dim(f"  {found.session.key}"))
    if found.summary:
        paper.line(dim(f"before: {cut(one_line(found.summary), _CELLS * 3)}"), hang=8)
    for one in found.messages:
        who = {"assistant": "agent", "failure": "no answer"}.get(one.role, one.name)
        paper.line(bold(who), dim(f"  {one.at[:16].replace('T', ' ')}"))
        paper.body(one.text, indent=2)
    if found.waiting:
        paper.line(dim(f"{count(len(found.waiting), 'message')} waiting"))
    if found.is_answering:
        paper.line(dim("An answer is being made."))
