"""One run of the command line: how it answers, and the home it opened."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import click

from nacre import settings
from nacre.cli.paper import Paper, unsteered
from nacre.errors import NacreError
from nacre.home import home
from nacre.sync import follow_up
from nacre.values.actor import Face

if TYPE_CHECKING:
    from nacre.home.home import Home
    from nacre.settings import Settings


@dataclass
class Run:
    """What one call of ``nacre`` works with. Answers are collected and written once, when all went well.

    ``problems`` are those that the daemon met on the way to an answer.
    ``afterwards`` is what can wait until the person has the answer, and may fail without a word.
    """

    as_json: bool = False
    exit_code: int = 0
    is_resumable: bool = False
    """What was interrupted goes on when it is run again."""
    by_itself: bool = False
    """This process is to answer, even where a daemon runs."""
    warnings: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    keeps_history: bool = True
    afterwards: list[Callable[[], object]] = field(default_factory=list)
    umask: int | None = None
    """That of who started the process, where nacre has its own."""
    _written: list[str] = field(default_factory=list)

    @cached_property
    def settings(self) -> Settings:
        """All settings. Raises SettingsInvalid."""
        return replace(settings.load_settings(), face=Face.COMMAND_LINE)

    @cached_property
    def home(self) -> Home:
        """The open home. Raises StoreUnusable and its kin."""
        return home.open_home(self.settings)

    def close(self) -> None:
        """Close the home if it was opened."""
        if "home" in self.__dict__:
            self.home.close()

    def keep_history(self) -> None:
        """Let what was done be judged and committed in the background, if it is time."""
        if "home" in self.__dict__:
            follow_up.keep_history(self.home, commits=self.keeps_history)

    def answer(self, record: Mapping[str, Any], render: Callable[[Paper], None]) -> None:
        """Give the answer: one object with ``--json``, else what ``render`` puts on paper."""
        if self.as_json:
            self._written.append(self._as_line(record))
            return
        paper = self.paper()
        render(paper)
        self._written.append(paper.text())

    def answer_lines(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Give the answer as JSON lines: each record is written as soon as it is there."""
        if self.as_json:
            raise click.UsageError("--json is one object and --jsonl one a line: leave one of them out")
        for record in records:
            click.echo(self._as_line(record), nl=False)

    def _as_line(self, record: Mapping[str, Any]) -> str:
        is_unicode = "utf" in (getattr(sys.stdout, "encoding", None) or "").lower()
        return unsteered(json.dumps(record, ensure_ascii=not is_unicode, default=str)) + "\n"

    def paper(self, *, stderr: bool = False) -> Paper:
        """Paper as wide as the terminal, coloured where one reads it."""
        return Paper.of(sys.stderr if stderr else sys.stdout, self.environ, lambda: self.settings.actor.is_agent)

    def show(self, render: Callable[[Paper], object]) -> None:
        """Show something on standard error, such as what a question is about."""
        paper = self.paper(stderr=True)
        render(paper)
        click.echo(paper.text(), nl=False, err=True)

    def tell(self, sentence: str) -> None:
        """A sentence on standard error, wrapped where a person reads it."""
        self.show(lambda paper: paper.line(sentence))

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment as the settings saw it; empty where they cannot be read."""
        try:
            return self.settings.environ
        except NacreError:
            return {}

    @property
    def is_interactive(self) -> bool:
        """Whether a person can be asked."""
        return bool(sys.stdin and sys.stdin.isatty())

    def confirm(self, question: str, *, yes: bool = False, refusal: str = "") -> None:
        """Ask on a terminal, unless it is answered by ``yes``.

        Raises Abort when the answer is no, UsageError with the refusal, if there is one, where it is not interactive.
        """
        if yes:
            return
        if refusal and not self.is_interactive:
            raise click.UsageError(refusal)
        click.confirm(question, abort=True, err=True)

    def flush(self) -> None:
        """Write the answer, then what else the person should know."""
        click.echo("".join(self._written), nl=False)
        self._written.clear()
        warnings, problems = list(self.warnings), list(self.problems)
        if "home" in self.__dict__:
            warnings += follow_up.warnings_of(self.home, of_sync=self.keeps_history)
            problems += self.home.problems
        for warning in dict.fromkeys([*warnings, *problems]):
            click.echo(f"warning: {warning}", err=True)
        if problems:
            click.echo(f"hint: mend the file in {self.settings.vault}; nacre doctor checks it", err=True)
