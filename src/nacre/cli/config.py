"""``nacre config``: show and change settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from nacre import known_settings
from nacre import settings as nacre_settings
from nacre.cli.command import (
    Group,
    Paper,
    Run,
    bold,
    dim,
)
from nacre.cli.operations import perform
from nacre.cli.options import (
    argument,
)
from nacre.errors import NacreError
from nacre.home import consent
from nacre.setup import models as writers
from nacre.values.memory import Face

if TYPE_CHECKING:
    pass

# ----------------------------------------------------------------------------
# ``nacre config``.


@click.group(
    "config",
    cls=Group,
    guesses={"get": "show", "list": "show"},
    examples=[
        "nacre config show",
        "nacre config show recall.limit",
        "nacre config set recall.limit 20",
    ],
)
def config() -> None:
    """Show and change settings."""


@config.command(
    "show",
    examples=["nacre config show", "nacre config show recall.limit", "nacre config show --json"],
)
@argument("config-get", "key", required=False)
@click.pass_obj
def show(run: Run, key: str | None) -> None:
    """Show settings, their values and origins, or print the value of KEY.

    With --json it also shows unset ones for rare cases. Only the last four characters of a key are shown.
    """
    if key:
        found = perform(run, writers.get_setting, key=key)
        run.answer(found, lambda paper: paper.verbatim(_told(found.value)))
        return
    settings = run.settings
    views = writers.list_settings(settings)
    shown = [
        view
        for view in views
        if view.origin != "default" or not known_settings.known(view.key).is_hidden
    ]
    record = {
        "home": str(settings.home),
        "config": str(settings.config),
        "database": settings.where,
        "settings": views,
    }

    def render(paper: Paper) -> None:
        paper.facts(
            (
                ("home", str(settings.home)),
                ("config", str(settings.config)),
                ("database", settings.where),
            )
        )
        paper.blank()
        paper.table(
            [
                (bold(item.key), _told(item.value), dim(item.origin), dim(item.summary))
                for item in shown
            ],
            header=("setting", "value", "from", "meaning"),
            drop=(2,)
            if not any(value.origin != "default" for value in run.settings.values.values())
            else (),
        )

    run.answer(record, render)


@config.command(
    "set",
    examples=[
        "nacre config set recall.limit 20",
        "nacre config set embedding.model none",
        "nacre config set ingest.roots '[\"~/exports\"]'",
    ],
)
@argument("config-set", "key")
@argument("config-set", "value")
@click.pass_obj
def set_value(run: Run, key: str, value: str) -> None:
    """Write one setting to the config file.

    VALUE is text, a number, true or false; lists and tables are written as in TOML. A table adds to what is there; {}
    empties it.
    """
    settings = replace(nacre_settings.load_settings(mending=key), face=Face.COMMAND_LINE)
    settings.actor.require_owner("nacre config set")
    path = settings.config
    written = writers.write(settings, key, value)
    shown = writers.hidden(run.settings, written)
    if shown != written:
        run.warnings.append(
            f"{path} now holds what looks like a key; nacre writer setup keeps keys in a better place"
        )
    variable = known_settings.known(key).variable
    if run.settings.values[key].origin == f"${variable}":
        run.warnings.append(f"${variable} is set and goes before the file")
    if key == "embedding.model":
        run.warnings += _told_of(written)
    if key == "writer.tokens_per_day" and written:
        run.warnings += (
            [told] if (told := writers.too_few(settings, writers.named(settings), written)) else []
        )
    if key == "writer.exclude_projects":
        run.warnings += _matching_nothing(run, written)
    run.answer(
        {"key": key, "value": shown, "path": str(path)},
        lambda paper: paper.line(bold(key), f" = {_told(shown)}", dim(f"  in {path}")),
    )


@config.command("unset", examples=["nacre config unset recall.limit"])
@argument("config-unset", "key")
@click.pass_obj
def unset(run: Run, key: str) -> None:
    """Remove a setting from the config file, so that its default applies."""
    settings = replace(nacre_settings.load_settings(mending=key), face=Face.COMMAND_LINE)
    settings.actor.require_owner("nacre config unset")
    found = writers.unset_setting(settings, writers.SettingRequest(key=key))
    run.answer(
        found,
        lambda paper: paper.line(bold(key), f" = {_told(found.value)}", dim(f"  {found.origin}")),
    )


def _told_of(model: str) -> list[str]:
    """What becomes of texts with an embedding model elsewhere."""
    try:
        told = consent.notice_of(nacre_settings.load_settings(), model)
    except NacreError:  # nacre writer embedding tells what is wrong with it
        return []
    return [told] if told else []


def _matching_nothing(run: Run, patterns: Sequence[str]) -> list[str]:
    """Which patterns keep nothing from a writer: a name that is misspelt does not."""
    if not (run.settings.server or run.settings.database.is_file()):
        return []
    names = writers.unmatched(run.home, patterns)
    return [
        f"no project is called {name!r} so far, so nothing is left out by it: nacre project list"
        for name in names
    ]


def _told(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
