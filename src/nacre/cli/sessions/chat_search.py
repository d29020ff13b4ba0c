"""``nacre gateway search``: a search of conversations in channels."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from nacre.cli.command import TEXT, command
from nacre.cli.formats import Record, short_session, stamp, when
from nacre.cli.operations import ask
from nacre.cli.paper import Paper, bold, dim, joined
from nacre.cli.request_options import option
from nacre.cli.run import Run
from nacre.values.session import Trust

if TYPE_CHECKING:
    from nacre.sessions.chat_search import Passage, Passages

_NOTHING = "Nothing that was said in a channel comes near."


@command(
    "search",
    examples=[
        'nacre gateway search "which oil does the tractor take"',
        "nacre gateway search boat house key --channel telegram --since march",
    ],
)
@click.argument("question", nargs=-1, required=True, type=TEXT)
@option("search-chats", "limit", "--limit", "-n")
@option("search-chats", "channel")
@option("search-chats", "session", help="Only this conversation (telegram:5054), or one session, by its id.")
@option("search-chats", "since")
@option("search-chats", "until")
@click.pass_obj
def search(
    run: Run, question: tuple[str, ...], limit: int, channel: str | None, session: str | None,
    since: datetime | None, until: datetime | None,
) -> None:  # fmt: skip
    """Search what was said in channels: passages of question and answer."""
    found: Passages = ask(
        run, "search-chats", query=" ".join(question), limit=limit, channel=channel, session=session, since=since,
        until=until,
    )  # fmt: skip
    record = {"query": found.query, "passages": [_record(one) for one in found.passages]}
    run.answer(record, lambda paper: _render(paper, found))


def _record(passage: Passage) -> Record:
    return {
        "text": passage.text, "score": passage.score, "session": passage.session, "key": passage.key,
        "channel": passage.channel, "time": stamp(passage.time), "trust": passage.trust,
    }  # fmt: skip


def _render(paper: Paper, found: Passages) -> None:
    if not found.passages:
        paper.line(bold(_NOTHING))
    for rank, passage in enumerate(found.passages, start=1):
        tool, _, native = passage.session.partition(":")
        place = joined((passage.key, f"{tool} {short_session(native)}", when(passage.time), f"{passage.score:.2f}"))
        paper.line(bold(f"{rank:>2}"), "  ", dim(place), hang=4)
        if passage.trust is Trust.UNTRUSTED:
            paper.framed(passage.text, f"from {passage.key}", indent=4)
        else:
            paper.body(passage.text, indent=4)
        paper.blank()
