"""The pages of the site that are made from the code: commands, settings, tools for agents, Python."""

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
from nacre.cli.command import Command, Group, load_command
from nacre.cli.root import SECTIONS, cli
from nacre.known_settings import SETTINGS, Setting
from nacre.serve.mcp import described, offered

COMMANDS = """# Commands

Every command has `--help` with examples, and `--json`, which prints one object with [stable names](../docs/json.md).
`nacre man` prints all of this as a manual page.
"""

SETTINGS_PAGE = """# Settings

`nacre config show` tells what is set and where that comes from; `nacre config set KEY VALUE` writes `config.toml` in
nacre's home (`~/.nacre`, or `NACRE_HOME`). A variable of the environment goes before the file: `NACRE_RECALL_LIMIT` for
`recall.limit`. No setting has to be set.
"""

TOOLS = """# Tools for agents

What `nacre mcp` offers to agents; [more about it](../docs/mcp.md). *Core* tools are offered unless `--tools all` or
`mcp.tools` asks for all.
"""

PYTHON = """# Python

```python
import nacre

with nacre.open_memory() as memory:
    print(memory.recall("when do we deploy?").hits)
```

Every error is a `NacreError` with a `hint`. Operations without a function of their own are
[called by name](../docs/json.md#requests-of-operations).
"""

EVERYWHERE = ("--json", "--help", "-h, --help")
"""Options that every command has."""

TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false"}


def reference_pages() -> dict[str, str]:
    """Each page by its place in the site."""
    sections = {title: f"reference/commands/{title.lower()}.md" for title in SECTIONS}
    return {
        "reference/commands.md": commands_page(sections),
        "reference/settings.md": settings_page(),
        "reference/tools.md": tools_page(),
        "reference/python.md": python_page(),
        **{place: section_page(title) for title, place in sections.items()},
    }


def commands_page(sections: dict[str, str]) -> str:
    """Every command in a line, and the pages that say more."""
    parts = [COMMANDS]
    for title, place in sections.items():
        page = place.removeprefix("reference/")
        parts += [f"\n## {title}\n\n| command | what it does |\n|---|---|\n"]
        parts += [
            f"| [`nacre {name}`]({page}#nacre-{name}) | {entry.summary} |\n"
            for name, entry in SECTIONS[title].items()
        ]
    names = "\n".join(
        place.removeprefix("reference/").removesuffix(".md") for place in sections.values()
    )
    return "".join(parts) + f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n"


def section_page(title: str) -> str:
    """The commands of a section, each with its subcommands."""
    root = click.Context(cli, info_name="nacre")
    parts = [f"# Commands: {title.lower()}\n"]
    for name, entry in SECTIONS[title].items():
        parts += command(click.Context(load_command(entry.place), info_name=name, parent=root), 2)
    return "".join(parts)


def command(context: click.Context, level: int) -> Iterator[str]:
    """What --help says of a command, and of those below it."""
    found = context.command
    usage = " ".join([context.command_path, *found.collect_usage_pieces(context)])
    yield f"\n{'#' * level} {context.command_path}\n\n```text\n{usage}\n```\n\n"
    for paragraph in (found.help or "").split("\n\n"):
        yield f"{plain(paragraph)}\n\n"
    told = [record for one in found.get_params(context) if (record := one.get_help_record(context))]
    rows = [option(names, help_) for names, help_ in told if help_ and names not in EVERYWHERE]
    if rows:
        yield table(("option", "what it does"), rows)
    examples = found.examples if isinstance(found, (Command, Group)) else ()
    if examples:
        yield "\n```sh\n" + "\n".join(examples) + "\n```\n"
    if isinstance(found, click.Group):
        for name in found.list_commands(context):
            below = found.get_command(context, name)
            if below and not below.hidden:
                yield from command(click.Context(below, info_name=name, parent=context), level + 1)


def option(names: str, help_: str) -> tuple[str, str]:
    """An option and what it does; long lists of choices stand with the latter."""
    names = re.sub(r"(INTEGER|FLOAT)( RANGE)?", "NUMBER", names)
    name, _, choices = names.removesuffix("]").partition(" [")
    if "|" not in choices:
        return f"`{escaped(names)}`", plain(help_)
    return (
        f"`{name}`",
        f"{plain(help_)} One of {', '.join(f'`{one}`' for one in choices.split('|'))}.",
    )


def settings_page() -> str:
    """Every setting, by its section."""
    parts = [SETTINGS_PAGE]
    for section, settings in groupby(sorted(SETTINGS, key=section_of), section_of):
        rows = [
            (f"`{one.key}`", type_of(one.type), default_of(one.default), plain(one.summary))
            for one in settings
        ]
        parts += [f"\n## {section}\n\n", table(("key", "type", "default", "what it does"), rows)]
    return "".join(parts)


def section_of(setting: Setting) -> str:
    """The part of a key before its dot."""
    return setting.key.partition(".")[0]


def type_of(kind: Any) -> str:
    """A type in words."""
    if isinstance(kind, types.GenericAlias):
        inner = get_args(kind)
        return f"list of {type_of(inner[0])}s" if get_origin(kind) is list else "table"
    return TYPES.get(kind, "any value")


def default_of(value: Any) -> str:
    """A default as a file would have it; what is empty is none."""
    if value in ("", [], {}):
        return "–"
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def tools_page() -> str:
    """Every tool with what it takes."""
    core = {one.name for one in offered(everything=False)}
    parts = [TOOLS]
    for tool in described(offered(everything=True)):
        schema = tool["inputSchema"]
        parts.append(
            f"\n## {tool['name']}\n\n{'*Core.* ' if tool['name'] in core else ''}{plain(tool['description'])}\n\n"
        )
        parts += fields(schema)
    return "".join(parts)


def fields(schema: dict[str, Any], margin: str = "") -> Iterator[str]:
    """What an object holds, and below a list of objects what each of them does."""
    for name, one in schema.get("properties", {}).items():
        yield f"{margin}- {field(name, one, name in schema.get('required', ()), {})}\n"
        yield from fields(one.get("items", {}), f"{margin}  ")


def python_page() -> str:
    """The functions of the package, and what an open home can do."""
    module = ast.parse(Path(api.__file__).read_text(encoding="utf-8"))
    (home,) = [one for one in module.body if isinstance(one, ast.ClassDef)]
    package = ["\n## The package\n", *functions(module.body, "")]
    opened = [
        f"\n## An open home\n\n{words(ast.get_docstring(home))}\n",
        *functions(home.body, "memory."),
    ]
    return "".join([PYTHON, *package, *opened])


def functions(body: Sequence[ast.stmt], prefix: str) -> Iterator[str]:
    """Each public function: its name, how it is called, what its docstring says."""
    for one in body:
        if (
            isinstance(one, ast.FunctionDef)
            and not one.name.startswith("_")
            and not one.decorator_list
        ):
            given = (
                ast.unparse(one.args).removeprefix("self").removeprefix(", ").replace("=", " = ")
            )
            answer = ast.unparse(one.returns) if one.returns else "None"
            called = f"{prefix or 'nacre.'}{one.name}({given}) -> {answer}"
            lines = textwrap.wrap(re.sub(r"(?<!,) ", "\xa0", called), 96, subsequent_indent="    ")
            called = "\n".join(lines).replace("\xa0", " ")
            yield f"\n### {prefix}{one.name}\n\n```python\n{called}\n```\n\n{words(ast.get_docstring(one))}\n"


def words(docstring: str | None) -> str:
    """A docstring as Markdown: names of code without their roles, paragraphs as they are."""
    return re.sub(r":\w+:`~?(?:[\w.]+\.)?(\w+)`", r"`\1`", (docstring or "").replace("``", "`"))


def plain(text: str) -> str:
    """One line of text that Markdown shows as it is."""
    line = " ".join(text.replace("\b", "").split())
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", line)


def escaped(code: str) -> str:
    """Code in the cell of a table."""
    return code.replace("|", "\\|")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
