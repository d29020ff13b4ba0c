"""A group of commands that is a whole program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from nacre.cli import boundary
from nacre.cli.command import Group
from nacre.cli.run import Run


class Program(Group):
    """A program named like its group, with the error boundary around it."""

    def main(self, args: Sequence[str] | None = None, *_: Any, umask: int | None = None, **__: Any) -> NoReturn:
        """Run, and exit with the code of the outcome; ``umask`` is that of who started the process."""
        arguments = list(args or ())
        run = Run(as_json=boundary.wants_json(arguments), umask=umask)
        raise SystemExit(boundary.guard(run, lambda: self._run(arguments, run)))

    def _run(self, arguments: list[str], run: Run) -> Any:
        return super().main(arguments, prog_name=self.name, standalone_mode=False, obj=run)
