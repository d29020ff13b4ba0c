"""All hosts, by name."""

from __future__ import annotations

from collections.abc import Mapping

from nacre.hosts import claude_code, codex, editors, terminals
from nacre.hosts.host import Host

_GEMINI, _OPENCODE, _OPENCLAW = terminals.HOSTS
_ALL = (claude_code.HOST, codex.HOST, *editors.HOSTS[:3], _GEMINI, _OPENCODE, _OPENCLAW, *editors.HOSTS[3:])

HOSTS: Mapping[str, Host] = {host.name: host for host in _ALL}
