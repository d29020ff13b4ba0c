"""``nacre config``: show and change settings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatch
from typing import Any

import click

from nacre import known_settings
from nacre import settings as nacre_settings
from nacre.cli.command import DefaultGroup, Paper, Run, bold, dim
from nacre.cli.options import argument, perform
from nacre.errors import NacreError
from nacre.home import spending
from nacre.memories import projects
from nacre.setup import models as writers
from nacre.values.memory import Face
from nacre.values.session import Task


@click.group(
    "config",
    cls=DefaultGroup,
    guesses={"get": "show", "list": "show"},
    examples=["nacre config", "nacre config show", "nacre config set recall.limit 20"],
)
def config(run: Run) -> None:
    """Show and change settings.

    Without a command, show the settings that differ from their defaults.
    """
    _show_settings(
        run, [view for view in writers.list_settings(run.settings) if view.origin != "default"]
    )


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
        setting = perform(run, writers.get_setting, key=key)
        run.answer(setting, Paper.verbatim, _text(setting.value))
        return
    _show_settings(run, writers.list_settings(run.settings))


def _show_settings(run: Run, views: Sequence[writers.SettingView]) -> None:
    settings = run.settings
    visible = [
        view
        for view in views
        if view.origin != "default" or not known_settings.setting_of(view.key).is_hidden
    ]
    places = {
        "home": str(settings.home),
        "config": str(settings.config),
        "database": settings.where,
    }

    def render(paper: Paper) -> None:
        paper.facts(places.items(), indent=0)
        paper.blank()
        if not visible:
            paper.line("All settings have their defaults.", dim("  nacre config show lists them"))
            return
        paper.table(
            [
                (
                    bold(item.key),
                    _text(item.value),
                    dim("config" if item.origin == places["config"] else item.origin),
                    dim(item.summary),
                )
                for item in visible
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
    settings = _mendable(key, "nacre config set")
    view = writers.set_setting(settings, key, value)
    new_value = run.settings[key]
    if view.value != new_value:
        run.warnings.append(
            f"{settings.config} now contains an API key; to store the key more safely, use nacre writer keys"
        )
    if view.origin == f"${view.variable}":
        run.warnings.append(f"${view.variable} is set and overrides the file")
    warning = None
    if key == "embedding.model":
        with suppress(NacreError):  # nacre writer embedding reports it
            warning = spending.consent_notice(nacre_settings.load_settings(), new_value)
    elif key == "writer.tokens_per_day" and new_value:
        warning = writers.too_few(settings, spending.set_for(settings, Task.EXTRACTION), new_value)
    elif key == "writer.exclude_projects" and (settings.server or settings.database.is_file()):
        names = projects.known_slugs(run.home)
        run.warnings += [
            f"no project matches {pattern!r}: nacre project list shows the names"
            for pattern in new_value
            if not any(fnmatch(name, pattern) for name in names)
        ]
    run.warnings += [warning] if warning else []
    run.present(view, _render_change)


@config.command("unset", examples=["nacre config unset recall.limit"])
@argument("config-unset", "key")
def unset(run: Run, key: str) -> None:
    """Remove a setting from the config file, so that its default applies."""
    settings = _mendable(key, "nacre config unset")
    view = writers.unset_setting(settings, key)
    if view:
        run.present(view, _render_change)
    else:
        run.answer(view, Paper.title, "Removed", f": {key}")


def _mendable(key: str, command: str) -> nacre_settings.Settings:
    settings = replace(nacre_settings.load_settings(mending=key), face=Face.COMMAND_LINE)
    settings.actor.require_owner(command)
    return settings


def _render_change(paper: Paper, view: writers.SettingView) -> None:
    paper.title(view.key, f" = {_text(view.value)}", dim(f"  {view.origin}"))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
