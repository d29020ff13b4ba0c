"""``nacre chat``."""

from __future__ import annotations

import sys
from contextlib import closing
from typing import TYPE_CHECKING

import click

from nacre.cli.command import TEXT, command
from nacre.cli.paper import Paper, bold, dim, printable
from nacre.cli.run import Run
from nacre.cli.services.gateway import homes_of
from nacre.errors import NacreError
from nacre.gateway import terminal
from nacre.platform.lazy import load

if TYPE_CHECKING:
    from nacre.gateway.terminal import TerminalChat
    from nacre.values.gateway.message import Answer

_SHOWN = 4
_LEAVES = ("/exit", "/quit", "/bye")
_BEGINS = ("/new", "/reset")
_PROMPT = "> "
_WAITS, _WIPED = "…", "\r \r"
"""Shown until the answer begins."""
_OTHERS = "Another nacre chat is open: this one is a conversation of its own."
_KEPT = "What you said is kept, and goes with your next message."


@command("chat", examples=["nacre chat", 'nacre chat "what did we decide about uploads?"', "git diff | nacre chat -"])
@click.argument("message", nargs=-1, type=TEXT)
@click.option("--model", type=TEXT, default="", help="Who answers (provider:model); else models.chat.")
@click.option("--new", is_flag=True, help="Begin a new conversation; else the last one goes on for four hours.")
@click.pass_obj
def chat(run: Run, message: tuple[str, ...], model: str, new: bool) -> None:
    """Talk to an agent that remembers.

    What you say and what it answers is a session like any other: searchable, and a source of memories. With MESSAGE it
    answers once; - reads standard input, too, as words that are not yours. In a conversation, /new begins another one
    and /exit ends it.
    """
    text = " ".join(one for one in message if one != "-")
    piped = sys.stdin.read() if "-" in message else ""
    run.keeps_history = False
    homes = homes_of(run)
    talk = terminal.TerminalChat(
        run.settings, homes.lent, load("nacre.gateway.responder:responder_for"), model=model,
        is_owner=not run.settings.actor.is_agent,
    )  # fmt: skip
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
        "session": talk.session.id, "answer": answer.text, "model": answer.model,
        "tokens": {"input": answer.input_tokens, "output": answer.output_tokens}, "cost_usd": answer.cost,
    }  # fmt: skip
