"""The processes that nacre starts of itself run commands that exist."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click

from nacre.cli.command import JSON
from nacre.cli.root import cli

SOURCE = Path(__file__).parents[2] / "src" / "nacre"


def started() -> Iterator[tuple[str, list[str]]]:
    """Yield the place and the words of each call that starts nacre with constant words."""
    for file in SOURCE.rglob("*.py"):
        text = file.read_text(encoding="utf-8")
        if not any(word in text for word in ("start_process", "_start(", "program()")):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call):
                name = ast.unparse(node.func)
                starts = name.endswith("start_process") or (
                    name == "_start" and ast.unparse(node.args[0]) == "home"
                )
                arguments = node.args if starts else []
            elif isinstance(node, ast.List) and "program()" in ast.unparse(node):
                arguments = node.elts
            else:
                continue
            words = [
                argument.value
                for argument in arguments
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
            ]
            if words:
                yield f"{file.name}:{node.lineno}", words


def test_every_started_command_exists_with_its_options() -> None:
    found = dict(started())
    assert {tuple(words[:2]) for words in found.values()} >= {
        ("admin", "commit"),
        ("server", "remote"),
        ("serve",),
    }
    for place, words in found.items():
        context = click.Context(cli, info_name="nacre")
        rest = list(words)
        while rest and isinstance(context.command, click.Group) and not rest[0].startswith("-"):
            below = context.command.get_command(context, rest.pop(0))
            assert below is not None, (place, words)
            context = click.Context(below, parent=context)
        options = {name for option in (*context.command.params, JSON) for name in option.opts}
        assert {word for word in rest if word.startswith("-")} <= options, (place, words)
