"""``nacre config``: show and change settings."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import replace
from typing import Any

import click

from nacre import known_settings
from nacre import settings as nacre_settings
from nacre.cli.command import Group, Paper, Run, bold, dim
from nacre.cli.operations import perform
from nacre.cli.options import argument
from nacre.errors import NacreError
from nacre.home import consent
from nacre.setup import models as writers
from nacre.values.memory import Face


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
def show(run: Run, key: str | None) -> None:
    """Show all settings with their values and origins, or the value of KEY.

    --json also includes rarely used settings that are not set. API keys are cut to their last four characters.
    """
    if key:
        found = perform(run, writers.get_setting, key=key)
        run.answer(found, Paper.verbatim, _text(found.value))
        return
    settings = run.settings
    views = writers.list_settings(settings)
    shown = [
        view
        for view in views
        if view.origin != "default" or not known_settings.known(view.key).is_hidden
    ]
    places = {
        "home": str(settings.home),
        "config": str(settings.config),
        "database": settings.where,
    }

    def render(paper: Paper) -> None:
        paper.facts(places.items())
        paper.blank()
        paper.table(
            [
                (bold(item.key), _text(item.value), dim(item.origin), dim(item.summary))
                for item in shown
            ],
            header=("setting", "value", "from", "meaning"),
            drop=(2,) if all(view.origin == "default" for view in views) else (),
        )

    run.answer({**places, "settings": views}, render)


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
def set_value(run: Run, key: str, value: str) -> None:
    """Write one setting to the config file.

    VALUE is text, a number, true or false. Lists and tables are written as in TOML. A table is merged into the current
    table; {} clears it.
    """
    settings = replace(nacre_settings.load_settings(mending=key), face=Face.COMMAND_LINE)
    settings.actor.require_owner("nacre config set")
    path = settings.config
    written = writers.write(settings, key, value)
    shown = writers.hidden(run.settings, written)
    if shown != written:
        run.warnings.append(
            f"{path} now contains an API key; to store the key more safely, use nacre writer keys"
        )
    variable = known_settings.known(key).variable
    if run.settings.values[key].origin == f"${variable}":
        run.warnings.append(f"${variable} is set and overrides the file")
    warning = None
    if key == "embedding.model":
        with suppress(NacreError):  # nacre writer embedding reports it
            warning = consent.notice_of(nacre_settings.load_settings(), written)
    elif key == "writer.tokens_per_day" and written:
        warning = writers.too_few(settings, writers.named(settings), written)
    elif key == "writer.exclude_projects" and (settings.server or settings.database.is_file()):
        for name in writers.unmatched(run.home, written):
            run.warnings.append(f"no project matches {name!r}: nacre project list shows the names")
    run.warnings += [warning] if warning else []
    run.answer(
        {"key": key, "value": shown, "path": str(path)},
        Paper.line,
        bold(key),
        f" = {_text(shown)}",
        dim(f"  in {path}"),
    )


@config.command("unset", examples=["nacre config unset recall.limit"])
@argument("config-unset", "key")
def unset(run: Run, key: str) -> None:
    """Remove a setting from the config file, so that its default applies."""
    settings = replace(nacre_settings.load_settings(mending=key), face=Face.COMMAND_LINE)
    settings.actor.require_owner("nacre config unset")
    found = writers.unset_setting(settings, key)
    run.answer(found, Paper.line, bold(key), f" = {_text(found.value)}", dim(f"  {found.origin}"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
