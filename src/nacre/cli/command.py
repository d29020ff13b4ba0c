"""Commands and groups with what all of them have: ``--json``, ``-h``, examples in their help."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import click

_HELP_WIDTH = 100


class Text(click.ParamType):  # type: ignore[type-arg,unused-ignore] # generic since click 8.3
    """Text from the command line; bytes that are not UTF-8 become replacement characters."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ARG002
        return str(value).encode("utf-8", "surrogateescape").decode("utf-8", "replace")


TEXT = Text()


def json_option() -> click.Option:
    """``--json``; the error boundary needs it before the arguments are parsed, so that it is looked up there."""
    return click.Option(
        ["--json"], is_flag=True, expose_value=False, help="Answer with one JSON object on standard output."
    )


class Command(click.Command):
    """A command with ``--json`` and examples."""

    def __init__(self, *args: Any, examples: Sequence[str] = (), **kwargs: Any) -> None:
        kwargs.setdefault("context_settings", {"help_option_names": ["-h", "--help"], "max_content_width": _HELP_WIDTH})
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self.params.append(json_option())

    def get_short_help_str(self, limit: int = 45) -> str:  # noqa: ARG002
        """The whole first sentence."""
        return first_sentence(self.help)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The examples, as they are typed."""
        write_examples(formatter, self.examples)


class Group(click.Group):
    """A group with ``--json`` and examples; without a command it shows its help.

    Commands in ``places``, by name, are loaded when they are used; see :func:`load_command`.
    """

    command_class = Command

    def __init__(
        self, *args: Any, examples: Sequence[str] = (), places: Mapping[str, str] | None = None, **kwargs: Any
    ) -> None:
        kwargs.setdefault("context_settings", {"help_option_names": ["-h", "--help"], "max_content_width": _HELP_WIDTH})
        kwargs.setdefault("invoke_without_command", True)
        super().__init__(*args, **kwargs)
        self.examples = tuple(examples)
        self._places = dict(places or {})
        self.params.append(json_option())
        if not self.has_default:
            self.callback = show_help

    has_default = False
    """Whether the group does something of its own without a command."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, sorted."""
        return sorted([*super().list_commands(ctx), *self._places])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a command's module where that is left until it is used."""
        place = self._places.get(cmd_name)
        return load_command(place) if place else super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; a misspelt one gets the nearest names."""
        name = args[0]
        if self.get_command(ctx, name) is None and not name.startswith("-"):
            from difflib import get_close_matches  # noqa: PLC0415 - only a misspelt command needs it

            near = get_close_matches(name, self.list_commands(ctx), n=2, cutoff=0.7)
            meant = f"; did you mean {' or '.join(near)}?" if near else ""
            raise click.UsageError(f"there is no command {name!r}{meant}", ctx)
        return super().resolve_command(ctx, args)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The examples, as they are typed."""
        write_examples(formatter, self.examples)


class DefaultGroup(Group):
    """A group whose own callback answers when no command is given."""

    has_default = True


def show_help() -> None:
    """The help of the group that is called, where no command of it is."""
    context = click.get_current_context()
    if context.invoked_subcommand is None:
        if context.obj.as_json:
            raise click.UsageError("say which command is to answer", context)
        click.echo(context.get_help())


def command(name: str, *, examples: Sequence[str], **kwargs: Any) -> Callable[[Callable[..., Any]], click.Command]:
    """Make a function a command; its docstring is the help."""
    return click.command(name, cls=Command, examples=examples, **kwargs)


def load_command(place: str) -> click.Command:
    """Load a command by its place, ``package.module:name`` within ``nacre.cli``."""
    module, _, name = place.partition(":")
    found: click.Command = getattr(import_module(f"nacre.cli.{module}"), name)
    return found


def first_sentence(text: str | None) -> str:
    """The first paragraph of a help text, which is one sentence."""
    return " ".join((text or "").split("\n\n")[0].split())


def write_examples(formatter: click.HelpFormatter, examples: Sequence[str]) -> None:
    """A section of lines that wrapping leaves alone."""
    if examples:
        with formatter.section("Examples"):
            for example in examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")
