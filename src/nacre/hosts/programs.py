"""nacre's programs as hosts are told to run them: with absolute paths, since editors have another PATH."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Programs:
    """``nacre`` and ``hook`` are the words that start them; ``quick_hook`` those that start the hook which asks the
    daemon from a shell, where there is one. ``home`` is named only where it is not the usual one.

    ``environ`` is what they need of the environment, such as where modules lie that are not installed.
    """

    nacre: tuple[str, ...]
    hook: tuple[str, ...]
    home: str | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    platform: str = "linux"
    version: str = ""
    quick_hook: tuple[str, ...] = ()

    @property
    def mcp(self) -> tuple[str, list[str]]:
        """The command that serves MCP, and its arguments."""
        words = [*self._environ_words, *self.nacre, "mcp", *(["--home", self.home] if self.home else [])]
        return words[0], words[1:]

    @property
    def given_environ(self) -> dict[str, str]:
        """What settings of hosts have to say of the environment: nothing where the command itself can say it.

        Some hosts refuse to set variables that could change what a program loads.
        """
        return dict(self.environ) if self.platform == "win32" else {}

    @property
    def _environ_words(self) -> list[str]:
        if self.platform == "win32" or not self.environ:
            return []
        return ["/usr/bin/env", *(f"{name}={value}" for name, value in self.environ.items())]

    def mcp_server(self, **more: Any) -> dict[str, Any]:
        """The server as most hosts' settings have it."""
        command, arguments = self.mcp
        environ = {"env": self.given_environ} if self.given_environ else {}
        return {"command": command, "args": arguments, **environ, **more}

    def hook_line(self, host: str, event: str, *, is_quick: bool = False) -> str:
        """The command line of a hook, as a shell reads it; ``is_quick``: of the quick one, where there is one."""
        program = self.quick_hook if is_quick and self.quick_hook else self.hook
        words = [*self._environ_words, *program, *(["--home", self.home] if self.home else []), host, event]
        return subprocess.list2cmdline(words) if self.platform == "win32" else shlex.join(words)

    def told(self) -> dict[str, Any]:
        """What plugins that are programs themselves are told: the file ``nacre.json`` beside them."""
        return {
            "version": self.version, "home": self.home, "nacre": list(self.nacre), "hook": list(self.hook),
            "env": dict(self.environ),
        }  # fmt: skip
