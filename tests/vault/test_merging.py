"""Two vaults made from one come together again: the same whichever side merges, and nothing is lost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nacre.values.memory import Expiry, Kind, Link, Memory, Retirement, Validity
from nacre.vault.documents import MergeOutcome, parse, render
from nacre.vault.files import folder_of
from nacre.vault.merging import MergedVault, merge_ledgers, merge_vaults

BEGIN = datetime(2026, 11, 1, tzinfo=UTC)
HOUSE = "0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e81"
BRIDGE = "0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e82"
BODY = "The bridge opens at eight. Lorries wait in the yard.\n\nThe keeper is called Osk.\n"


def memory(memory_id: str = BRIDGE, content: str = BODY, **values: Any) -> Memory:
    known = {
        "kind": Kind.FACT,
        "subject": "The bridge",
        "project": "harbour",
        "created": BEGIN,
        "updated": BEGIN,
    }
    return Memory(id=memory_id, content=content, **{**known, **values})  # type: ignore[arg-type]


def later(one: Memory, hours: float = 1, **values: Any) -> Memory:
    return replace(one, updated=one.updated + timedelta(hours=hours), **values)


def files(*memories: Memory, name: str = "bridge.md", **texts: str) -> dict[str, bytes]:
    found = {f"{folder_of(item)}/{name}": render(item).encode() for item in memories}
    return {**found, **{path: text.encode() for path, text in texts.items()}}


def merged(base: dict[str, bytes], ours: dict[str, bytes], theirs: dict[str, bytes]) -> MergedVault:
    result = merge_vaults(base, ours, theirs)
    assert merge_vaults(base, theirs, ours) == result
    again = merge_vaults(base, result.files, theirs)
    assert again.files == result.files
    return result


def the_only(result: MergedVault) -> Memory:
    (found,) = read(result.files)
    return found


def read(tree: dict[str, bytes]) -> list[Memory]:
    return [
        parse(data.decode(), path, new_id=lambda: "none", modified=BEGIN)
        for path, data in tree.items()
        if path.endswith(".md") and not path.endswith("project.md")
    ]


def outcomes(result: MergedVault) -> list[MergeOutcome]:
    return [note.outcome for note in result.notes]


def test_changes_of_different_fields_are_merged() -> None:
    one = memory(tags=("water", "old"))
    result = merged(
        files(one),
        files(later(one, importance=9)),
        files(later(one, 2, subject="The swing bridge", tags=("water",))),
    )
    found = the_only(result)
    assert (found.importance, found.subject, found.tags) == (9, "The swing bridge", ("water",))
    assert found.updated == BEGIN + timedelta(hours=2)
    assert outcomes(result) == [MergeOutcome.MERGED]


def test_later_millisecond_wins_over_whole_seconds() -> None:
    one = memory()
    ours, theirs = later(one, importance=9), later(one, 1 + 0.25 / 3600, importance=4)
    assert b"updated: 2026-11-01T01:00:00.250Z" in files(theirs)["projects/harbour/fact/bridge.md"]
    found = the_only(merged(files(one), files(ours), files(theirs)))
    assert (found.importance, found.updated) == (4, theirs.updated)


def test_later_version_wins_for_a_field_changed_twice() -> None:
    one = memory()
    result = merged(
        files(one),
        files(later(one, 3, expiry=Expiry.CORE)),
        files(later(one, 2, expiry=Expiry.TEMPORARY)),
    )
    assert the_only(result).expiry is Expiry.CORE
    assert result.notes[0].fields == ("expiry",)


def test_stating_a_default_does_not_override_an_edit() -> None:
    path, note = (
        "projects/harbour/fact/bridge.md",
        f"---\nid: {BRIDGE}\n---\n# The bridge\n\nIt opens at eight.\n",
    )
    edited = render(later(memory(content="It opens at nine.\n"), 5)).encode()
    ours = note.replace("---\n#", "importance: 9\nsubject: The swing bridge\n---\n#").encode()
    result = merged({path: note.encode()}, {path: ours}, {path: edited})
    found = the_only(result)
    assert (found.importance, found.subject) == (9, "The swing bridge")
    assert result.notes[0].fields in ((), ("body",))


def test_link_changed_on_both_sides_is_merged_by_field() -> None:
    one = memory(links=(Link("part_of", HOUSE),))
    ours = later(
        one,
        links=(
            Link("part_of", HOUSE, "by the river", None, 0.9, Validity(until=date(2027, 1, 1))),
        ),
    )
    theirs = later(
        one, 2, links=(Link("part_of", HOUSE, None, None, 0.2, Validity(until=date(2026, 6, 1))),)
    )
    for sides in ((ours, theirs), (theirs, ours)):
        result = merged(files(one), *map(files, sides))
        link = Link("part_of", HOUSE, "by the river", None, 0.2, Validity(until=date(2026, 6, 1)))
        assert the_only(result).links == (link,)


def test_lists_are_united_without_removed_items() -> None:
    links = (Link("part_of", HOUSE), Link("related_to", "0197"))
    one = memory(tags=("a", "b", "c"), links=links)
    result = merged(
        files(one),
        files(later(one, tags=("a", "b", "c", "d"), links=links[:1])),
        files(later(one, tags=("b", "c", "e"), links=(*links, Link("builds_on", "0196")))),
    )
    assert the_only(result).tags == ("b", "c", "d", "e")
    assert the_only(result).links == (links[0], Link("builds_on", "0196"))


def test_untrusted_and_private_win_on_conflict() -> None:
    text = render(memory()).replace("scope: private\n", "scope: personal\n")
    sides = [
        text.replace("trust: trusted", f"trust: {trust}").replace("personal", scope)
        for trust, scope in (("trusted", "private"), ("untrusted", "public"))
    ]
    path = "projects/harbour/fact/bridge.md"
    found = the_only(
        merged({path: text.encode()}, {path: sides[0].encode()}, {path: sides[1].encode()})
    )
    assert (found.trust, found.scope) == ("untrusted", "private")


def test_bodies_merge_by_line_and_by_sentence() -> None:
    one = memory()
    result = merged(
        files(one),
        files(later(one, content=BODY.replace("at eight", "at nine"))),
        files(later(one, content=BODY.replace("in the yard", "by the mill") + "She has a dog.\n")),
    )
    assert the_only(result).content == (
        "The bridge opens at nine. Lorries wait by the mill.\n\nThe keeper is called Osk.\nShe has a dog."
    )


def test_sentence_changed_twice_is_kept_twice_and_linked() -> None:
    one = memory(tags=("water",))
    result = merged(
        files(one),
        files(later(one, 2, content=BODY.replace("at eight", "at nine"))),
        files(later(one, content=BODY.replace("at eight", "at seven"))),
    )
    first, second = sorted(read(result.files), key=lambda found: found.id != BRIDGE)
    assert "at nine" in first.content
    assert "at seven" in second.content
    assert [(link.rel, link.to) for link in first.links] == [("contradicts", second.id)]
    assert second.tags == ("water",)
    (note,) = result.notes
    assert (note.outcome, note.path, note.other) == (
        MergeOutcome.KEPT_TWICE,
        "projects/harbour/fact/bridge.md",
        "projects/harbour/fact/bridge-2.md",
    )


FIELDS: list[dict[str, Any]] = [
    {},
    {"importance": 9},
    {"tags": ("night",)},
    {"kind": Kind.DECISION},
    {"project": "town"},
    {"triggers": ("ferry",), "links": (Link("related_to", HOUSE),)},
]


@pytest.mark.parametrize("mine", FIELDS)
@pytest.mark.parametrize("its", FIELDS)
@pytest.mark.parametrize("what", ["content", "subject"])
def test_conflicting_versions_are_both_kept_completely(
    what: str, mine: dict[str, Any], its: dict[str, Any]
) -> None:
    nine, seven = ({what: f"It opens at {hour}.\n"} for hour in ("nine", "seven"))
    one, other = later(memory(), 2, **nine, **mine), later(memory(), 1, **seven, **its)
    first, second = sorted(
        read(merged(files(memory()), files(one), files(other)).files), key=lambda m: m.id != BRIDGE
    )
    *links, doubt = first.links
    assert (doubt.rel, doubt.to) == ("contradicts", second.id)
    assert replace(first, links=tuple(links)) == the_only(MergedVault(files(one)))
    assert replace(second, id=BRIDGE) == the_only(MergedVault(files(other)))


def test_moved_and_edited_memory_is_merged() -> None:
    one = memory()
    result = merged(
        files(one),
        files(replace(one, project="town", kind=Kind.EVENT)),
        files(later(one, content="It is closed.\n")),
    )
    assert list(result.files) == ["projects/town/event/bridge.md"]
    found = the_only(result)
    assert (found.content, found.project, found.kind) == ("It is closed.", "town", Kind.EVENT)
    assert b"project: town\n" in result.files["projects/town/event/bridge.md"]


def test_memory_moved_to_different_folders_ends_in_a_single_folder() -> None:
    one = memory()
    result = merged(
        files(one), files(replace(one, project="town")), files(later(one, project="isle"))
    )
    assert list(result.files) == ["projects/isle/fact/bridge.md"]


def test_renamed_and_retired_memory_is_retired_under_new_name() -> None:
    one = memory()
    retired = replace(one, retired=Retirement(BEGIN, "it was torn down"))
    result = merged(files(one), files(one, name="swing.md"), files(retired))
    assert list(result.files) == ["retired/projects/harbour/fact/swing.md"]


def test_retired_and_edited_memory_stays_retired_with_the_edit() -> None:
    one = memory()
    retired = replace(one, retired=Retirement(BEGIN, "it was torn down"))
    result = merged(files(one), files(retired), files(later(one, content="It is closed.\n")))
    found = the_only(result)
    assert found.retired
    assert (found.retired.reason, found.content) == ("it was torn down", "It is closed.")
    assert outcomes(result) == [MergeOutcome.STAYS_RETIRED]


def test_earlier_of_two_retirements_wins() -> None:
    one = memory()
    first, second = (
        files(replace(one, retired=Retirement(BEGIN + timedelta(days=days), f"after {days} days")))
        for days in (1, 2)
    )
    found = the_only(merged(files(one), second, first))
    assert found.retired == Retirement(BEGIN + timedelta(days=1), "after 1 days")


def test_deleted_memory_is_removed_unless_edited_on_the_other_side() -> None:
    one = memory()
    assert merged(files(one), {}, files(one)).files == {}
    result = merged(files(one), {}, files(later(one, content="It is closed.\n")))
    assert the_only(result).content == "It is closed."
    assert outcomes(result) == [MergeOutcome.KEPT_EDITED]


def test_memories_with_the_same_path_are_both_kept() -> None:
    result = merged({}, files(memory(BRIDGE)), files(memory(HOUSE, "Of another town.\n")))
    assert sorted(result.files) == [
        "projects/harbour/fact/bridge-2.md",
        "projects/harbour/fact/bridge.md",
    ]
    assert {found.id for found in read(result.files)} == {BRIDGE, HOUSE}
    assert outcomes(result) == [MergeOutcome.RENAMED]


def test_names_differing_only_in_case_collide() -> None:
    result = merged({}, files(memory(BRIDGE), name="Bridge.md"), files(memory(HOUSE, "Another.\n")))
    assert sorted(path.lower() for path in result.files) == sorted(
        {path.lower() for path in result.files}
    )


def test_equal_memories_of_both_sides_are_merged() -> None:
    other = memory("0198f3c2-7d1a-7c3e-9b1e-5f0c2a4d6e99", links=(Link("supersedes", HOUSE),))
    old = memory(HOUSE, "It opens at six.\n", superseded_by=other.id)
    path = "projects/harbour/fact/old.md"
    result = merged(
        {path: render(replace(old, superseded_by=None)).encode()},
        files(memory(BRIDGE)) | {path: render(replace(old, superseded_by=None)).encode()},
        files(other) | {path: render(old).encode()},
    )
    found = {item.id: item for item in read(result.files)}
    assert found.keys() == {HOUSE, BRIDGE}
    assert found[HOUSE].superseded_by == BRIDGE
    assert found[BRIDGE].links == (Link("supersedes", HOUSE),)
    assert result.united == {other.id: BRIDGE}


def test_note_without_id_gets_the_same_id_on_both_sides() -> None:
    path, words = "inbox/note.md", "# Tides\n\nLow at noon.\n"
    sides = [{path: f"---\nid: {item}\n---\n{words}".encode()} for item in (BRIDGE, HOUSE)]
    result = merged({path: words.encode()}, *sides)
    assert list(result.files) == [path]
    assert the_only(result).id == min(BRIDGE, HOUSE)
    half = merged({path: words.encode()}, sides[0], {path: words.replace("noon", "one").encode()})
    assert (the_only(half).id, the_only(half).content) == (BRIDGE, "Low at one.")


def test_both_files_with_a_duplicated_id_are_kept() -> None:
    one = memory()
    copy = files(one) | files(replace(one, project="town"))
    edited = files(later(one, importance=9))
    result = merged(files(one), edited, copy)
    assert result.files == copy | edited
    assert outcomes(result) == []


def test_comments_and_unknown_keys_of_both_sides_survive() -> None:
    base = (
        render(memory())
        .replace("importance: 7", "# how much it matters\nimportance: 7  # of ten")
        .encode()
    )
    path = "projects/harbour/fact/bridge.md"
    ours = base.replace(b"importance: 7", b"importance: 8").replace(
        b"kind:", b"mood: [calm]\nkind:"
    )
    theirs = base.replace(b"expiry:", b"# how long\nexpiry:").replace(
        b"kind:", b"mood: [grey]\nheight: 4\nkind:"
    )
    text = merged({path: base}, {path: ours}, {path: theirs}).files[path].decode()
    assert "# how much it matters\nimportance: 8  # of ten\n" in text
    assert "# how long\nexpiry:" in text
    assert "mood: [calm, grey]\n" in text
    assert "height: 4\n" in text


def test_unreadable_version_is_kept_next_to_the_readable_version() -> None:
    base, path = files(memory()), "projects/harbour/fact/bridge.md"
    broken = base[path].replace(b"tags:", b"tags: [").replace(b"subject:", b"subject: {")
    marked = base[path] + b"<<<<<<< HEAD\nOne.\n=======\nTwo.\n>>>>>>> other\n"
    for unreadable in (broken, marked):
        result = merged(base, {path: unreadable}, files(later(memory(), content="It is closed.\n")))
        assert the_only(result).content == "It is closed."
        assert unreadable in result.files.values()
        assert outcomes(result) == [MergeOutcome.KEPT_BESIDE]


def test_project_created_on_two_machines_is_merged() -> None:
    path = "projects/harbour/project.md"
    page = "---\nid: {}\nname: harbour\nremotes: [host/harbour]\nroots: [{}]\n---\n# harbour\n"
    result = merged(
        {},
        {path: page.format(BRIDGE, "/code/harbour").encode()},
        {path: page.format(HOUSE, "/home/harbour").encode()},
    )
    text = result.files[path].decode()
    assert f"id: {min(BRIDGE, HOUSE)}\n" in text
    assert "/code/harbour" in text
    assert "/home/harbour" in text


def test_differently_spelt_remote_is_the_same_project() -> None:
    path = "projects/harbour/project.md"
    page = "---\nid: {}\nname: harbour\nremotes: ['{}']\n---\n# harbour\n"
    result = merged(
        {},
        {path: page.format(BRIDGE, "host.example/ida/harbour").encode()},
        {path: page.format(HOUSE, "ssh://git@host.example:2222/ida/harbour.git").encode()},
    )
    assert sorted(result.files) == [path]


def test_equal_project_names_with_different_remotes_stay_separate() -> None:
    path = "projects/harbour/project.md"
    page = "---\nid: {}\nname: harbour\nremotes: [{}]\n---\n# harbour\n"
    one = {path: page.format("0198-1", "host/ida/harbour").encode()} | files(memory(BRIDGE))
    other = {path: page.format("0198-2", "host/osk/harbour").encode()} | files(
        memory(HOUSE, "Of another town.\n")
    )
    result = merged({}, one, other)
    assert sorted(result.files) == [
        "projects/harbour-2/fact/bridge.md",
        "projects/harbour-2/project.md",
        "projects/harbour/fact/bridge.md",
        path,
    ]
    assert {found.id: found.project for found in read(result.files)} == {
        BRIDGE: "harbour",
        HOUSE: "harbour-2",
    }
    assert b"project: harbour-2\n" in result.files["projects/harbour-2/fact/bridge.md"]


def test_other_files_are_merged_as_text_or_kept_separately() -> None:
    base = {"profile.md": b"Always ask.\n\nNever shout.\n", "tide.png": b"\x89\0one"}
    result = merged(
        base,
        {"profile.md": b"Always ask.\n\nNever shout.\n\nPrefer tea.\n", "tide.png": b"\x89\0two"},
        {"profile.md": b"Always ask twice.\n\nNever shout.\n", "tide.png": b"\x89\0three"},
    )
    assert result.files["profile.md"] == b"Always ask twice.\n\nNever shout.\n\nPrefer tea.\n"
    assert sorted(result.files.values()).count(b"\x89\0two") == 1
    assert sorted(result.files.values()).count(b"\x89\0three") == 1
    assert [note.path for note in result.notes if note.outcome is MergeOutcome.KEPT_BESIDE] == [
        "tide.png"
    ]


def test_ledgers_are_united_in_operation_order() -> None:
    lines = [f'{{"op": "0198-{number}", "action": "retire"}}\n'.encode() for number in range(5)]
    ours, theirs = (
        lines[0] + lines[3] + lines[4],
        lines[0] + lines[1] + b"<<<<<<< HEAD\n" + lines[2] + b"torn",
    )
    assert merge_ledgers(ours, theirs) == b"torn\n" + b"".join(lines)
    assert merge_ledgers(theirs, ours) == merge_ledgers(ours, theirs)


def test_long_repeated_lines_are_merged_quickly() -> None:
    same = "The same.\n" * 5000
    one = memory(content=same)
    result = merged(
        files(one),
        files(later(one, content=f"First.\n{same}")),
        files(later(one, content=f"{same}Last.\n")),
    )
    assert len(result.files) in (1, 2)


# Whatever people do, on both sides.

IDS = [f"0198f3c2-7d1a-7c3e-9b1e-{number:012x}" for number in range(8)]
WORDS = st.sampled_from(["tide", "mast", "oar", "buoy", "keel"])
SENTENCES = st.lists(
    st.sampled_from([f"The {a} is {b}. " for a in ("tide", "mast", "oar") for b in ("low", "old")]),
    min_size=1,
    max_size=4,
)


def links_to(target: str) -> st.SearchStrategy[Link]:
    ends = st.sampled_from([None, date(2026, 6, 1), date(2027, 1, 1)])
    strengths = st.sampled_from([None, 0.2, 0.9])
    return st.builds(
        Link,
        st.just("related_to"),
        st.just(target),
        strength=strengths,
        valid=st.builds(Validity, ends, ends),
    )


@st.composite
def memories(draw: st.DrawFn, ids: list[str]) -> Memory:
    return memory(
        draw(st.sampled_from(ids)),
        "\n".join("".join(draw(SENTENCES)).strip() for _ in range(draw(st.integers(1, 3)))) + "\n",
        subject=draw(WORDS).title(),
        project=draw(st.sampled_from(["harbour", None])),
        tags=tuple(draw(st.lists(WORDS, unique=True, max_size=3))),
        updated=BEGIN + timedelta(hours=draw(st.integers(0, 2))),
        importance=draw(st.integers(5, 8)),
        links=tuple(
            draw(links_to(item))
            for item in draw(st.lists(st.sampled_from(IDS), unique=True, max_size=2))
        ),
        retired=draw(st.sampled_from([None, None, Retirement(BEGIN)])),
        superseded_by=draw(st.sampled_from([None, None, *IDS[:2]])),
    )


@dataclass(frozen=True)
class Doing:
    """One thing done to a vault: a new version of a memory at a name, or a deletion."""

    new: Memory
    name: str
    delete: bool


def doings(ids: list[str]) -> st.SearchStrategy[list[Doing]]:
    one = st.builds(
        Doing,
        memories(ids),
        st.sampled_from(["a.md", "b.md"]),
        st.sampled_from([False, False, True]),
    )
    return st.lists(one, max_size=5)


def after(tree: dict[str, bytes], done: list[Doing]) -> dict[str, bytes]:
    tree = dict(tree)
    for item in done:
        for path in [
            path for path, data in tree.items() if f"id: {item.new.id}\n".encode() in data
        ]:
            del tree[path]
        if not item.delete:
            tree[f"{folder_of(item.new)}/{item.name}"] = render(item.new).encode()
    return tree


three_sides = given(doings(IDS[:4]), doings(IDS[:6]), doings([*IDS[:4], *IDS[6:]]))


@settings(max_examples=200)
@three_sides
def test_random_merges_lose_nothing(
    before: list[Doing], mine: list[Doing], others: list[Doing]
) -> None:
    check_merge(before, mine, others)


@settings(max_examples=30)
@three_sides
def test_example_merges_lose_nothing(
    before: list[Doing], mine: list[Doing], others: list[Doing]
) -> None:
    check_merge(before, mine, others)


def check_merge(before: list[Doing], mine: list[Doing], others: list[Doing]) -> None:
    """Check that both sides merge to the same vault, with every memory and sentence of each."""
    base = after({}, before)
    ours, theirs = after(base, mine), after(base, others)
    assert merge_vaults(base, ours, base).files == ours
    assert merge_vaults(base, ours, ours).files == ours
    result = merged(base, ours, theirs)
    had, one, other = ({found.id: found for found in read(tree)} for tree in (base, ours, theirs))
    left = read(result.files)
    for memory_id in one.keys() | other.keys():
        stays = memory_id in one and memory_id in other
        changed = any(
            had.get(memory_id) != side[memory_id] for side in (one, other) if memory_id in side
        )
        if (stays or changed) and memory_id not in result.united:
            assert memory_id in {found.id for found in left}
    sentences = {sentence for found in left for sentence in split(found)}
    for memory_id, found in [*one.items(), *other.items()]:
        new = set(split(found)) - (set(split(had[memory_id])) if memory_id in had else set())
        assert new <= sentences


def split(found: Memory) -> list[str]:
    return [
        part.strip()
        for line in found.content.splitlines()
        for part in line.split(". ")
        if part.strip(" .")
    ]


def test_repeated_sentence_is_not_a_merge_anchor() -> None:
    known = memory(content="The tide is old.\n")
    base, mine, other = (
        files(replace(known, content=text))
        for text in (
            "The tide is old.\n",
            "The tide is low.\n",
            "The tide is old.\nThe tide is old.\n",
        )
    )
    left = {found.content.strip() for found in read(merged(base, mine, other).files)}
    assert left == {"The tide is low.", "The tide is old.\nThe tide is old."}
