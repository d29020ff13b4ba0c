"""Scenarios of deep recall with a model."""

from __future__ import annotations

from nacre.api import MemoryHome
from nacre.values.recall import DecidedBy, DeepResult, Route
from nacre.values.session import Task
from tests.llm.stage import Stage, scenario

PAGES = {
    "atlas-tiles": "Atlas tiles draws the tiles of the map: rendering, fonts, colours, resolution.",
    "atlas-search": "Atlas search finds places by name: the index of names, its ranking, typing errors.",
}


def prepared(stage: Stage) -> None:
    """Store two projects with similar names, a third project, and facts about the owner."""
    for slug, page in PAGES.items():
        stage.world.write(
            f"projects/{slug}/project.md", f"---\nid: {slug}\nname: {slug}\n---\n\n{page}\n"
        )
    stage.world.write("profile.md", "Always call me Captain.\nNever indent code with tabs.\n")
    with stage.open() as context, MemoryHome(context) as memory:
        for project, text in (
            (
                "atlas-tiles",
                "Labels came out blurred on dense screens because glyphs were drawn at 96 dpi; 192 dpi helped.",
            ),
            ("atlas-tiles", "Water is drawn in #a8c8e0, as the printed edition has it."),
            (
                "atlas-tiles",
                "A rendered zoom level is published by make publish-level, after a look at three cities.",
            ),
            ("atlas-search", "Names are folded to ASCII before they are looked up, with ß as ss."),
            ("atlas-search", "Villages below 50 inhabitants are ranked after peaks."),
            ("bakery", "Orders for Sunday close on Friday at six."),
        ):
            memory.store(text, project=project)
            stage.world.clock.pass_days(1)


def deep_recall(stage: Stage, question: str, *recent: tuple[str, str]) -> DeepResult:
    with stage.open(Task.RECALL) as context, MemoryHome(context) as memory:
        result = memory.deep_recall(question, recent=recent)
    assert result.problem is None
    return result


@scenario()
def self_contained_request_needs_no_memory(stage: Stage) -> None:
    prepared(stage)
    result = deep_recall(stage, "please write a haiku about rivers in autumn")
    assert (result.route, result.context) == (Route.NONE, "")


@scenario()
def owner_question_is_answered_from_the_profile(stage: Stage) -> None:
    prepared(stage)
    result = deep_recall(stage, "which way do I like my code indented?")
    assert (result.route, result.project) == (Route.OWNER, None)
    assert "Never indent code with tabs." in result.context


@scenario()
def matching_project_and_memory_are_selected(stage: Stage) -> None:
    prepared(stage)
    result = deep_recall(
        stage,
        "why did the labels of the atlas look blurred, and what helped?",
        ("owner", "I'm about to render the map for the new tablets."),
    )
    assert (result.route, result.project) == (Route.PROJECT, "atlas-tiles")
    assert "192 dpi" in result.hits[0].memory.content
    assert len(result.hits) < 3
    assert {step.by for step in result.steps if step.name in ("gate", "project", "select")} == {
        DecidedBy.MODEL
    }


@scenario()
def ambiguous_project_is_asked_for(stage: Stage) -> None:
    prepared(stage)
    result = deep_recall(stage, "what was the last thing that we decided for atlas?")
    assert set(result.clarify) == set(PAGES)
    assert result.hits == ()
