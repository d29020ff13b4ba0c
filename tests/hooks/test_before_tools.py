"""Before an edit or a command, the agent receives memories with a matching trigger or a rule that names it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import nacre
from nacre.base.text import count_tokens
from tests.hooks.conftest import Hooked, HookResult, be_at_rest, serving

SUITES = "Do not run the integration test suites while working on a change: they take half an hour."
AMENDING = "Never amend commits here: the review tool loses their comments."
FORMATTING = "Always run `mise run fmt` before `mise run lint`."
LEDGER = "In ledger_test.py compare whole results, never parts of them."
GUIDES = "Guides in docs/guides tell how things work now, not how they came to be."
LAMPS = "The tests in lamps/keeper_test.py need no network."
LONG = (
    "Releases are tagged with `gh release create`: "
    + "first the notes, then the archive, then the tag; " * 20
)
STATUS = "Paths of `git status` are relative to the repository's root."
DECIDED = "We run `npm run bundle` with esbuild, decided for its speed."
HALF_DONE = "The move of the ledgers is half done: say so before any change."
PUSHED = "The mirror in Oslo is read-only until spring."
SCHEMA = "Columns are never renamed while the harbour is open."
READ = "Whitespace is shown with colours."
INTENTS: tuple[tuple[str, tuple[str, ...], int], ...] = (
    (HALF_DONE, ("billing/",), 2),
    (PUSHED, ("$ git push",), 0),
    (SCHEMA, ("*.sql",), 0),
    (READ, ("`git diff`",), 0),
)
RULES = (SUITES, AMENDING, FORMATTING, LEDGER, GUIDES, LAMPS, STATUS, LONG)


@pytest.fixture
def served(hooked: Hooked) -> Iterator[Hooked]:
    """A home with rules and a running daemon."""
    with nacre.open_memory(hooked.home) as memory:
        for rule in RULES:
            memory.store(rule, kind=nacre.Kind.PREFERENCE)
        memory.store(DECIDED, kind=nacre.Kind.DECISION)
    with serving(hooked.home):
        yield hooked


def run(hooked: Hooked, command: str, session: str = "5e55-0001", **more: object) -> HookResult:
    event = hooked.hook_input(
        session_id=session, tool_name="Bash", tool_input={"command": command}, **more
    )
    return hooked.run("PreToolUse", event)


def edit(hooked: Hooked, path: str) -> HookResult:
    arguments = {"file_path": path, "old_string": "a", "new_string": "b"}
    return hooked.run("PreToolUse", hooked.hook_input(tool_name="Edit", tool_input=arguments))


@pytest.mark.parametrize(
    ("command", "rule"),
    [
        ("cd app && mise run test:integration 2>&1 | tail -5", SUITES),
        ("git add . && git commit --amend --no-edit", AMENDING),
        ("mise run lint", FORMATTING),
    ],
)
def test_command_receives_the_rule_that_names_it(served: Hooked, command: str, rule: str) -> None:
    context = run(served, command).context
    assert rule in context
    assert context.startswith("<nacre-context>\nReference data from nacre")
    assert context.endswith("</nacre-context>")
    assert context.count("\n- ") == 1


@pytest.mark.parametrize(
    "command",
    [
        "ls",
        "git status",
        "git commit -m x",
        "mise run test",
        "git log --grep amend",
        "cat docs/guides/one.md",
        "npm run bundle",
        "echo 'git commit --amend'",
        "git commit -F - <<EOF\nmise run lint\nEOF",
        "",
    ],
)
def test_other_commands_receive_nothing(served: Hooked, command: str) -> None:
    assert run(served, command).out == ""


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        ("/code/app/ledger_test.py", LEDGER),
        ("/code/app/docs/guides/start/one.md", GUIDES),
        ("/code/app/lamps/keeper_test.py", LAMPS),
    ],
)
def test_edit_receives_the_rule_naming_the_file_or_folder(
    served: Hooked, path: str, rule: str
) -> None:
    assert rule in edit(served, path).context


@pytest.mark.parametrize(
    "path", ["/code/app/ledger.py", "/code/guides/one.md", "/code/doors/keeper_test.py", "/"]
)
def test_edits_of_other_files_receive_nothing(served: Hooked, path: str) -> None:
    assert edit(served, path).out == ""


@pytest.fixture
def triggered(hooked: Hooked) -> Iterator[Hooked]:
    """A home with memories that have triggers, and a running daemon."""
    with nacre.open_memory(hooked.home) as memory:
        for text, triggers, times in INTENTS:
            memory.call("store", content=text, triggers=triggers, trigger_times=times)
    with serving(hooked.home):
        yield hooked


def test_edits_receive_a_memory_by_its_trigger_until_it_ends(triggered: Hooked) -> None:
    path = "/code/app/billing/x.py"
    contexts = []
    for number in range(4):
        arguments = {"file_path": path, "old_string": "a", "new_string": "b"}
        event = triggered.hook_input(
            session_id=f"5e55-000{number}", tool_name="Edit", tool_input=arguments
        )
        contexts += [
            triggered.run("PreToolUse", event).context,
            triggered.run("PreToolUse", event).out,
        ]
        be_at_rest(triggered.home)
    assert [HALF_DONE in context for context in contexts] == [True, False] * 2 + [False] * 4


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("git add . && git push origin main", PUSHED),
        ("psql -f db/schema.sql", SCHEMA),
        ("git diff", READ),
        ("git pull", ""),
        ("cat db/schema.sql", ""),
        ("echo 'git push'", ""),
    ],
)
def test_command_receives_a_memory_by_its_trigger(
    triggered: Hooked, command: str, text: str
) -> None:
    context = run(triggered, command).context
    assert text in context
    assert bool(context) == bool(text)


def test_prompt_and_tool_deliver_a_memory_once_per_session(triggered: Hooked) -> None:
    prompt = triggered.hook_input(prompt="please move billing/x.py to another folder")
    assert HALF_DONE in triggered.run("UserPromptSubmit", prompt).context
    be_at_rest(triggered.home)
    assert edit(triggered, "/code/app/billing/x.py").out == ""


def test_several_triggers_of_a_call_are_answered_together(triggered: Hooked) -> None:
    context = edit(triggered, "/code/app/billing/schema.sql").context
    assert HALF_DONE in context
    assert SCHEMA in context


def test_read_only_tools_receive_nothing(served: Hooked) -> None:
    event = served.hook_input(
        tool_name="Read", tool_input={"file_path": "/code/app/ledger_test.py"}
    )
    assert served.run("PreToolUse", event).out == ""


def test_session_receives_each_rule_once(served: Hooked) -> None:
    assert run(served, "mise run lint").context
    assert run(served, "mise run lint").out == ""
    assert run(served, "mise run lint", session="5e55-0002").context


def test_rule_given_with_a_prompt_is_not_repeated_before_tools(served: Hooked) -> None:
    prompt = served.hook_input(prompt="may I amend commits in this repository?")
    assert AMENDING in served.run("UserPromptSubmit", prompt).context
    assert run(served, "git commit --amend").out == ""


def test_rule_given_before_a_tool_is_not_repeated_with_prompts(served: Hooked) -> None:
    assert AMENDING in run(served, "git commit --amend").context
    prompt = served.hook_input(prompt="may I amend commits in this repository?")
    assert AMENDING not in served.run("UserPromptSubmit", prompt).context


def test_rule_in_the_hosts_own_file_is_not_repeated(served: Hooked) -> None:
    (served.folder / "CLAUDE.md").write_text(f"# Rules\n\n- {AMENDING}\n")
    assert run(served, "git commit --amend").out == ""
    assert run(served, "mise run lint").context


def test_untrusted_rule_is_not_given(served: Hooked) -> None:
    (page,) = [
        path for path in (served.home / "vault").rglob("*.md") if AMENDING in path.read_text()
    ]
    page.write_text(page.read_text().replace("trust: trusted", "trust: untrusted"))
    with nacre.open_memory(served.home) as memory:
        memory.list()  # sees what was changed by hand
    assert run(served, "git commit --amend").out == ""


def test_probably_outdated_rule_is_not_given(hooked: Hooked) -> None:
    older, newer = (
        "Runs of `make bench` are 10 minutes",
        "Runs of `make bench` have changed to 25 minutes",
    )
    with nacre.open_memory(hooked.home) as memory:
        for rule, importance in ((older, 9), (newer, 5)):
            memory.store(rule, kind=nacre.Kind.PREFERENCE, importance=importance)
    with serving(hooked.home):
        context = run(hooked, "make bench").context
        assert run(hooked, "make bench").out == ""
    assert newer in context
    assert older not in context


def test_long_rule_is_truncated_at_the_budget(served: Hooked) -> None:
    (line,) = [
        line
        for line in run(served, "gh release create v1").context.splitlines()
        if line.startswith("- ")
    ]
    assert "…" in line
    assert LONG[:60] in line
    assert 60 < count_tokens(line) <= 80


@pytest.mark.parametrize("more", [{"agent_id": "a1"}, {"session": ""}])
def test_sessions_without_a_person_receive_nothing(served: Hooked, more: dict[str, str]) -> None:
    assert run(served, "git commit --amend", **more).out == ""  # type: ignore[arg-type]


def test_rule_waits_on_hosts_without_tool_hooks(
    served: Hooked,
) -> None:
    event = served.hook_input(
        tool_name="run_shell_command", tool_input={"command": "git commit --amend"}
    )
    assert served.run("BeforeTool", event, host="gemini-cli").out == "{}"
    assert (
        AMENDING
        in served.run(
            "BeforeAgent", served.hook_input(prompt="may I amend commits?"), host="gemini-cli"
        ).out
    )


def test_codex_receives_rules_for_files_changed_by_a_patch(served: Hooked) -> None:
    patch = "*** Begin Patch\n*** Update File: src/a.py\n@@\n-a\n+b\n*** Add File: docs/guides/one.md\n+One\n*** End Patch"  # noqa: E501
    event = served.hook_input(tool_name="apply_patch", tool_input={"command": patch})
    assert GUIDES in served.run("PreToolUse", event, host="codex").context


def test_generic_tool_event_receives_rules(served: Hooked) -> None:
    event = served.hook_input(tool_name="shell", tool_input={"command": "git commit --amend"})
    assert AMENDING in served.run("tool", event, host="generic").out


def test_tool_hook_without_the_daemon_is_silent(hooked: Hooked) -> None:
    with nacre.open_memory(hooked.home) as memory:
        memory.store(AMENDING, kind=nacre.Kind.PREFERENCE)
    ran = run(hooked, "git commit --amend")
    assert (ran.code, ran.out) == (0, "")
    assert hooked.log()[-1]["how"] == "alone"


@pytest.mark.parametrize(
    "event", [None, [], "x", {"command": 7}, {"file_path": None}, {"file_path": "x" * 5_000_000}]
)
def test_unusual_arguments_receive_nothing(served: Hooked, event: object) -> None:
    ran = served.run("PreToolUse", served.hook_input(tool_name="Edit", tool_input=event))
    assert (ran.code, ran.out) == (0, "")
