"""Generate pages of the site from the code: commands, settings, tools for agents, Python."""

from __future__ import annotations

import ast
import re
import textwrap
import types
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, get_args, get_origin

import click
from write_json_docs import field

from nacre import api
from nacre.cli.command import Command, Group, first_sentence
from nacre.cli.root import SECTIONS, cli, plugin_commands
from nacre.known_settings import SETTINGS, Setting
from nacre.serve.mcp import describe_tools, offered_tools

COMMANDS = """# Commands

Every command has `--help` with examples, and `--json`, which prints one object with [stable names](../docs/json.md).
"""

SETTINGS_PAGE = """# Settings

`nacre config show` shows all settings and their sources. `nacre config set KEY VALUE` writes `config.toml` in nacre's
home (`~/.nacre`, or `NACRE_HOME`). Environment variables override the file: `NACRE_RECALL_LIMIT` sets `recall.limit`.
All settings are optional.
"""

TOOLS = """# Tools for agents

`nacre mcp` offers these tools to agents; see [MCP](../docs/mcp.md). Only *core* tools are offered by default;
`--tools all` or `mcp.tools` adds the others.
"""

PYTHON = """# Python

```python
import nacre

with nacre.open_memory() as memory:
    print(memory.recall("when do we deploy?").hits)
```

Every error is a `NacreError` with a `hint`. Operations without a function are
[called by name](../docs/json.md#requests-and-results-of-operations).
"""

COMMAND_NAMES = {
    **{title: list(names) for title, names in SECTIONS.items()},
    "Plugins": plugin_commands(),
}
EVERYWHERE = ("--json", "--help", "-h, --help")
"""Options that every command has."""

TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def reference_pages() -> dict[str, str]:
    """Return the generated pages by their path in the site."""
    sections = {title: f"reference/commands/{title.lower()}.md" for title in COMMAND_NAMES}
    return {
        "reference/commands.md": commands_page(sections),
        "reference/settings.md": settings_page(),
        "reference/tools.md": tools_page(),
        "reference/python.md": python_page(),
        **{place: section_page(title) for title, place in sections.items()},
    }


def load(name: str) -> click.Command:
    """Return a top-level command."""
    found = cli.get_command(click.Context(cli), name)
    assert found  # noqa: S101 - the names are those of the program
    return found


def commands_page(sections: dict[str, str]) -> str:
    """Return a page with a line for each command."""
    parts = [COMMANDS]
    for title, place in sections.items():
        page = place.removeprefix("reference/")
        parts += [f"\n## {title}\n\n| command | description |\n|---|---|\n"]
        parts += [
            f"| [`nacre {name}`]({page}#nacre-{name}) | {first_sentence(load(name).help)} |\n"
            for name in COMMAND_NAMES[title]
        ]
    names = "\n".join(
        place.removeprefix("reference/").removesuffix(".md") for place in sections.values()
    )
    return "".join(parts) + f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def section_page(title: str) -> str:
    """Return a page with a section's commands and subcommands."""
    root = click.Context(cli, info_name="nacre")
    parts = [f"# Commands: {title.lower()}\n"]
    for name in COMMAND_NAMES[title]:
        parts += command(click.Context(load(name), info_name=name, parent=root), 2)
    return "".join(parts)


def command(context: click.Context, level: int) -> Iterator[str]:
    """Yield the help for a command and its subcommands."""
    current = context.command
    usage = " ".join([context.command_path, *current.collect_usage_pieces(context)])
    yield f"\n{'#' * level} {context.command_path}\n\n```text\n{usage}\n```\n\n"
    for paragraph in (current.help or "").split("\n\n"):
        yield f"{plain(paragraph)}\n\n"
    records = [
        record
        for parameter in current.get_params(context)
        if (record := parameter.get_help_record(context))
    ]
    rows = [option(names, help_) for names, help_ in records if help_ and names not in EVERYWHERE]
    if rows:
        yield table(("option", "description"), rows)
    examples = current.examples if isinstance(current, (Command, Group)) else ()
    if examples:
        yield "\n```sh\n" + "\n".join(examples) + "\n```\n"
    if isinstance(current, click.Group):
        for name in current.list_commands(context):
            below = current.get_command(context, name)
            if below and not below.hidden:
                yield from command(click.Context(below, info_name=name, parent=context), level + 1)


def option(names: str, help_: str) -> tuple[str, str]:
    """Return an option and its help. The help lists the choices."""
    names = re.sub(r"(INTEGER|FLOAT)( RANGE)?", "NUMBER", names)
    name, _, choices = names.removesuffix("]").partition(" [")
    if "|" not in choices:
        return f"`{escaped(names)}`", plain(help_)
    return (
        f"`{name}`",
        f"{plain(help_)} One of {', '.join(f'`{choice}`' for choice in choices.split('|'))}.",
    )


def settings_page() -> str:
    """Return a page with all settings by section."""
    parts = [SETTINGS_PAGE]
    for section, settings in groupby(sorted(SETTINGS, key=section_of), section_of):
        rows = [
            (
                f"`{setting.key}`",
                type_of(setting.type),
                default_of(setting.default),
                plain(setting.summary),
            )
            for setting in settings
        ]
        parts += [f"\n## {section}\n\n", table(("key", "type", "default", "description"), rows)]
    return "".join(parts)


def section_of(setting: Setting) -> str:
    """Return the part of a key before the dot."""
    return setting.key.partition(".")[0]


def type_of(kind: Any) -> str:
    """Return the name of a type."""
    if isinstance(kind, types.GenericAlias):
        inner = get_args(kind)
        return f"list of {type_of(inner[0])}s" if get_origin(kind) is list else "table"
    return TYPES.get(kind, "any value")


def default_of(value: Any) -> str:
    """Return a default as it is written in the configuration file, or a dash if it is empty."""
    if value in ("", [], {}):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def tools_page() -> str:
    """Return a page with all tools and their arguments."""
    core = {tool.name for tool in offered_tools(everything=False)}
    parts = [TOOLS]
    for tool in describe_tools(offered_tools(everything=True)):
        schema = tool["inputSchema"]
        parts.append(
            f"\n## {tool['name']}\n\n{'*Core.* ' if tool['name'] in core else ''}{plain(tool['description'])}\n\n"
        )
        parts += fields(schema)
    return "".join(parts)


def fields(schema: dict[str, Any], margin: str = "") -> Iterator[str]:
    """Yield the fields in an object, and in the objects in its lists."""
    for name, inner in schema.get("properties", {}).items():
        yield f"{margin}- {field(name, inner, name in schema.get('required', ()))}\n"
        yield from fields(inner.get("items", {}), f"{margin}  ")


def python_page() -> str:
    """Return a page with the package's functions and the methods of an open home."""
    module = ast.parse(Path(api.__file__).read_text(encoding="utf-8"))
    *_, home = [statement for statement in module.body if isinstance(statement, ast.ClassDef)]
    package = ["\n## The package\n", *functions(module.body, "")]
    opened = [
        f"\n## An open home\n\n{words(ast.get_docstring(home))}\n",
        *functions(home.body, "memory."),
    ]
    return "".join([PYTHON, *package, *opened])


def functions(body: Sequence[ast.stmt], prefix: str) -> Iterator[str]:
    """Yield the name, signature and docstring of each public function."""
    for statement in body:
        if (
            isinstance(statement, ast.FunctionDef)
            and not statement.name.startswith("_")
            and not statement.decorator_list
        ):
            arguments = (
                ast.unparse(statement.args)
                .removeprefix("self")
                .removeprefix(", ")
                .replace("=", " = ")
            )
            answer = ast.unparse(statement.returns) if statement.returns else "None"
            called = f"{prefix or 'nacre.'}{statement.name}({arguments}) -> {answer}"
            lines = textwrap.wrap(re.sub(r"(?<!,) ", "\xa0", called), 96, subsequent_indent="    ")
            called = "\n".join(lines).replace("\xa0", " ")
            text = words(ast.get_docstring(statement))
            yield f"\n### {prefix}{statement.name}\n\n```python\n{called}\n```\n\n{text}\n"


def words(docstring: str | None) -> str:
    """Return a docstring as Markdown. Roles are removed from names of code."""
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", (docstring or "").replace("``", "`"))


def plain(text: str) -> str:
    """Escape a line of text for Markdown."""
    line = " ".join(text.replace("\b", "").split())
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", line)


def escaped(code: str) -> str:
    """Escape code for a table cell."""
    return code.replace("|", "\\|")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
