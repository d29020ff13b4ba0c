"""The Aider adapter splits a growing file into sessions and takes times from the input history."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from nacre.readers.adapter import Adapter, read_head
from nacre.readers.registry import find_adapter
from nacre.values.session import Flag, Speaker, Tokens, Trust
from nacre_extras.aider import ADAPTER
from nacre_extras.aider import ADAPTER_LLM_HISTORY as LLM

HISTORY = """
# aider chat started at 2026-11-18 09:00:00

> You can skip this check with --no-gitignore  
> /home/me/.local/bin/aider --model model-1  
> Aider v0.86.1  
> Main model: gemini/model-1 with diff-fenced edit format, 32k think tokens  
> Git repo: .git with 360 files  

#### /add mill.py  
> Added mill.py to the chat  

#### Grind the flour  
#### twice, not once.  

► **THINKING**

Hidden thoughts.

► **ANSWER**

I grind it twice:

mill.py
```python
<<<<<<< SEARCH
once()
=======
twice()
>>>>>>> REPLACE
```

#### A heading of the agent

> a quotation by the agent

> Tokens: 3.2k sent, 120 received.  
> Applied edit to mill.py  
> Commit 1a2b3c4 fix: grind twice  

#### /ask Which stone?  

Granite.

#### /run make sieve  
> fatal: never sieve wet flour  

#### !ls  

#### Use the sieve? (Y)es/(N)o [Yes]: y  
# aider chat started at 2026-11-19 10:00:00

#### Thanks.  
"""  # noqa: W291
INPUT = """
# 2026-11-18 09:00:05.100000
+/add mill.py

# 2026-11-18 09:00:30.500000
+Grind the flour
+twice, not once.

# 2026-11-18 09:01:00.000000
+/ask Which stone?
"""


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone()


def test_history_is_read_by_session_and_speaker(read: Any, write: Any) -> None:
    path = write(".aider.chat.history.md", HISTORY)
    sessions, turns, source = read(ADAPTER, path)
    answer = (
        "I grind it twice:\n\nmill.py\n\n#### A heading of the agent\n\n> a quotation by the agent"
    )
    assert [(turn.speaker.value, turn.text, turn.flags) for turn in turns] == [
        ("owner", "/add mill.py", Flag.COMMAND),
        ("owner", "Grind the flour\ntwice, not once.", Flag.NONE),
        ("agent", answer, Flag.NONE),
        ("owner", "Which stone?", Flag.NONE),
        ("agent", "Granite.", Flag.NONE),
        ("owner", "/run make sieve", Flag.COMMAND),
        ("owner", "!ls", Flag.META),
        ("owner", "Thanks.", Flag.NONE),
    ]
    calls = [(call.name, call.input, call.outcome) for turn in turns for call in turn.tool_calls]
    assert calls[:2] == [
        ("edit", "mill.py", "ok"),
        ("commit", "Commit 1a2b3c4 fix: grind twice", "ok"),
    ]
    first, last = sessions[0], sessions[-1]
    assert (first.tool_version, first.model, first.cwd) == (
        "0.86.1",
        "gemini/model-1",
        str(path.parent),
    )
    assert first.native_id != last.native_id
    assert (first.started, last.started) == (utc("2026-11-18 09:00:00"), utc("2026-11-19 10:00:00"))
    assert source.tally.corrupt == 0


def test_incremental_read_equals_full_read(
    read: Any, write: Any, in_two_goes: Callable[[Adapter, Path], None]
) -> None:
    in_two_goes(ADAPTER, write("mill/.aider.chat.history.md", HISTORY))


def test_input_history_provides_times_and_confirms_typed_prompts(read: Any, write: Any) -> None:
    write(".aider.input.history", INPUT)
    _, turns, _ = read(ADAPTER, write(".aider.chat.history.md", HISTORY))
    times = {turn.text.partition("\n")[0]: (turn.time, turn.trust) for turn in turns}
    assert times["/add mill.py"] == (utc("2026-11-18 09:00:05.100000"), Trust.TRUSTED)
    assert times["Grind the flour"] == (utc("2026-11-18 09:00:30.500000"), Trust.TRUSTED)
    assert times["I grind it twice:"][0] == utc("2026-11-18 09:00:30.500000")
    assert times["Which stone?"] == (utc("2026-11-18 09:01:00"), Trust.TRUSTED)
    assert times["Thanks."] == (utc("2026-11-19 10:00:00"), Trust.UNTRUSTED)


def test_unquoted_line_without_trailing_spaces_is_not_typed(read: Any, write: Any) -> None:
    text = "# aider chat started at 2026-11-18 09:00:00\n\n#### Hello  \n\nHi.\n\n#### Always grind at noon.\n\nYes?\n"
    _, turns, _ = read(ADAPTER, write(".aider.chat.history.md", text))
    assert [turn.speaker for turn in turns] == [Speaker.OWNER, Speaker.AGENT]


def test_history_with_stripped_trailing_spaces_is_read(read: Any, write: Any) -> None:
    stripped = "\n".join(line.rstrip() for line in HISTORY.splitlines()) + "\n"
    _, turns, _ = read(ADAPTER, write(".aider.chat.history.md", stripped))
    assert "Grind the flour\ntwice, not once." in [
        turn.text for turn in turns if turn.speaker is Speaker.OWNER
    ]


@pytest.mark.parametrize(
    "fetch_line",
    [
        "#### /web https://mill.example  \n",
        "#### See https://mill.example  \n> Scraping https://mill.example...  \n",
        "#### See https://mill.example  \n> Add URL to the chat? (Y)es/(N)o/(D)on't ask again [Yes]: y  \n",
    ],
)
def test_agent_is_untrusted_after_a_fetched_page(fetch_line: str, read: Any, write: Any) -> None:
    start = "# aider chat started at 2026-11-18 09:00:00\n\n#### Hello  \n\nHi there, miller.\n\n"
    text = f"{start}{fetch_line}\nA toll is due.\n\n#### Go on.  \n\nNine sacks are due.\n"
    _, turns, _ = read(ADAPTER, write(".aider.chat.history.md", text))
    assert [turn.trust for turn in turns if turn.speaker is Speaker.AGENT] == [
        Trust.TRUSTED,
        Trust.UNTRUSTED,
        Trust.UNTRUSTED,
    ]
    assert {turn.trust for turn in turns if turn.speaker is Speaker.OWNER} == {Trust.TRUSTED}


def test_tokens_are_recorded_per_answer_and_session(
    read: Any, write: Any, in_two_goes: Callable[[Adapter, Path], None]
) -> None:
    start = "# aider chat started at 2026-11-18 09:00:00\n\n#### Grind.  \n\nGround.\n\n"
    text = (
        f"{start}> Tokens: 4.2k sent, 150 received.  \n\n#### Again.  \n\nGround again.\n\n"
        "> Tokens: 12k sent, 8.5k cache write, 3k cache hit, 1.1k received. Cost: $0.10 message, $0.12 session.  \n\n"
        f"{start}> Tokens: 90 sent, 7 received.  \n\n{start}"
    )
    path = write("mill/.aider.chat.history.md", text)
    sessions, _, _ = read(ADAPTER, path)
    tokens = {session.native_id: session.tokens for session in sessions}
    assert list(tokens.values()) == [Tokens(13_200, 3_000, 1_250), Tokens(90, 0, 7), None]
    in_two_goes(ADAPTER, path)


def test_sessions_in_the_same_second_have_distinct_ids(read: Any, write: Any) -> None:
    start = "# aider chat started at 2026-11-18 09:00:00\n\n#### Hello  \n\n"
    first, _, _ = read(ADAPTER, write("a/.aider.chat.history.md", start + start))
    two, _, _ = read(ADAPTER, write("b/.aider.chat.history.md", start))
    assert len({session.native_id for session in [*first, *two]}) == 3


def test_input_history_is_not_a_transcript(read: Any, write: Any) -> None:
    path = write(".aider.input.history", INPUT)
    adapter = find_adapter(read_head(path))
    assert adapter is ADAPTER
    assert read(ADAPTER, path)[:2] == ([], [])


PLAN = "I plan to grind it twice, in two steps, and to salt it after the second of the two steps, not before."
LOG = f"""TO LLM 2026-11-18T09:00:00
-------
SYSTEM Act as a miller.
SYSTEM 
SYSTEM # *SEARCH/REPLACE block* Rules:
SYSTEM 
SYSTEM Mind every rule that was ever written for millers in this valley, and then all others, too.
-------
USER I have *added these files to the chat* so you see them.
-------
ASSISTANT Ok.
-------
USER Grind the flour twice.
USER 
USER And salt it.
USER 
USER # *SEARCH/REPLACE block* Rules:
USER 
USER Mind every rule that was ever written for millers in this valley, and then all others, too.
LLM RESPONSE 2026-11-18T09:00:04
ASSISTANT {PLAN}
TO LLM 2026-11-18T09:00:05
-------
SYSTEM Act as an editor.
-------
USER {PLAN}
LLM RESPONSE 2026-11-18T09:00:08
ASSISTANT mill.py
ASSISTANT ```python
ASSISTANT <<<<<<< SEARCH
ASSISTANT once()
ASSISTANT =======
ASSISTANT twice()
ASSISTANT >>>>>>> REPLACE
ASSISTANT ```
TO LLM 2026-11-18T09:00:09
-------
USER I added these files to the chat: mill.py
USER Let me know if there are others we should add.
LLM RESPONSE 2026-11-18T09:00:10
ASSISTANT Fine.
TO LLM 2026-11-18T14:00:00
-------
USER What next?
"""  # noqa: W291


def test_model_log_yields_typed_prompts_and_answers(read: Any, write: Any) -> None:
    path = write(".aider.llm.history", LOG)
    assert find_adapter(read_head(path)) is LLM
    sessions, turns, _ = read(LLM, path)
    assert [(turn.speaker.value, turn.text) for turn in turns] == [
        ("owner", "Grind the flour twice.\n\nAnd salt it."),
        ("agent", PLAN),
        ("agent", "mill.py"),
        ("agent", "Fine."),
        ("owner", "What next?"),
    ]
    calls = [(call.name, call.paths, call.outcome) for turn in turns for call in turn.tool_calls]
    assert calls == [("edit", ("mill.py",), "ok")]
    assert [session.started for session in sessions] == [
        utc("2026-11-18 09:00:00"),
        utc("2026-11-18 14:00:00"),
    ]


def test_model_log_is_ignored_if_chat_history_exists(read: Any, write: Any) -> None:
    path = write(".aider.llm.history", LOG)
    write(".aider.chat.history.md", HISTORY)
    assert read(LLM, path)[:2] == ([], [])


PAGE = "The toll of the mill in the valley is nine sacks of flour on every single market day."
VISITED = f"""TO LLM 2026-11-18T09:00:00
-------
USER Read https://mill.example and sum it up.
USER 
USER Here is the content of https://mill.example:
USER 
USER # Tolls
USER 
USER {PAGE}
LLM RESPONSE 2026-11-18T09:00:04
ASSISTANT {PAGE}
TO LLM 2026-11-18T09:01:00
-------
USER Read https://mill.example and sum it up.
USER 
USER Here is the content of https://mill.example:
USER 
USER {PAGE}
-------
ASSISTANT {PAGE}
-------
USER Go on.
LLM RESPONSE 2026-11-18T09:01:04
ASSISTANT As I said, the toll of the mill in the valley is nine sacks.
TO LLM 2026-11-18T09:02:00
-------
USER I ran this command:
USER 
USER make sieve
USER 
USER And got this output:
USER 
USER Always sieve the flour at noon.
LLM RESPONSE 2026-11-18T09:02:04
ASSISTANT The sieve is fine.
"""  # noqa: W291


def test_pages_and_outputs_in_model_logs_are_not_owner_text(read: Any, write: Any) -> None:
    _, turns, _ = read(LLM, write(".aider.llm.history", VISITED))
    assert [(turn.speaker.value, turn.text[:19], turn.trust) for turn in turns] == [
        ("owner", "Read https://mill.e", Trust.TRUSTED),
        ("agent", "The toll of the mil", Trust.UNTRUSTED),
        ("owner", "Go on.", Trust.TRUSTED),
        ("agent", "As I said, the toll", Trust.UNTRUSTED),
        ("agent", "The sieve is fine.", Trust.TRUSTED),
    ]
    assert turns[0].text == "Read https://mill.example and sum it up."


def test_edit_that_does_not_apply_is_a_failure(read: Any, write: Any) -> None:
    blocks = "".join(
        f"ASSISTANT {name}\nASSISTANT ```\nASSISTANT <<<<<<< SEARCH\nASSISTANT a\nASSISTANT =======\n"
        "ASSISTANT b\nASSISTANT >>>>>>> REPLACE\nASSISTANT ```\n"
        for name in ("mill.py", "sieve.py")
    )
    log = (
        "TO LLM 2026-11-18T09:00:00\n-------\nUSER Grind.\n"
        f"LLM RESPONSE 2026-11-18T09:00:04\n{blocks}"
        "TO LLM 2026-11-18T09:00:05\n-------\nUSER # 1 SEARCH/REPLACE block failed to match!\nUSER \n"
        "USER This SEARCH block failed to exactly match lines in sieve.py\n"
    )
    _, turns, _ = read(LLM, write(".aider.llm.history", log))
    assert [(call.input, call.outcome) for call in turns[-1].tool_calls] == [
        ("mill.py", "ok"),
        ("sieve.py", "error: # 1 SEARCH/REPLACE block failed to match!"),
    ]


ANSWER = "Grind the rye twice on the granite stone, then sieve it before it is weighed."


def test_command_output_repeated_by_aider_was_not_typed(read: Any, write: Any) -> None:
    text = (
        "# aider chat started at 2026-11-18 09:00:00\n\n#### /code Grind it finer.  \n\n#### Grind it finer.  \n\n"
        f"Done.\n\n#### /architect How often?  \n\n#### How often?  \n\n{ANSWER}\n\n#### {ANSWER}  \n\n"
        "mill.py\n\n#### Thanks.  \n"
    )
    _, turns, _ = read(ADAPTER, write(".aider.chat.history.md", text))
    assert [turn.text for turn in turns if turn.speaker is Speaker.OWNER] == [
        "Grind it finer.",
        "How often?",
        "Thanks.",
    ]


@pytest.mark.parametrize("between", ["  \n", "\n\n"], ids=["as written", "reformatted"])
def test_aider_manual_pages_after_a_question_were_not_typed(
    between: str, read: Any, write: Any, in_two_goes: Callable[[Adapter, Path], None]
) -> None:
    question = "How is a mill ignored?"
    pages = [
        "# Question: " + question,
        "",
        "# Relevant docs:",
        "",
        "<doc>",
        "Always grind by night.",
        "</doc>",
        "",
    ]
    text = (
        f"# aider chat started at 2026-11-18 09:00:00\n\n#### /help {question}  \n\n"
        + "".join(f"#### {line}{between}" for line in pages)
        + "\nWith a file.\n\n#### Thanks.  \n"
    )
    path = write("mill/.aider.chat.history.md", text)
    _, turns, _ = read(ADAPTER, path)
    assert [turn.text for turn in turns if turn.speaker is Speaker.OWNER] == [question, "Thanks."]
    in_two_goes(ADAPTER, path)


def test_prompt_repeated_after_an_answer_is_typed_again(
    read: Any, write: Any, in_two_goes: Callable[[Adapter, Path], None]
) -> None:
    text = (
        "# aider chat started at 2026-11-18 09:00:00\n\n#### /code Grind it.  \n\n#### Grind it.  \n\n"
        f"{ANSWER}\n\n#### Grind it.  \n\nDone.\n\n#### Done.  \n"
    )
    path = write("mill/.aider.chat.history.md", text)
    _, turns, _ = read(ADAPTER, path)
    assert [turn.text for turn in turns if turn.speaker is Speaker.OWNER] == [
        "Grind it.",
        "Grind it.",
        "Done.",
    ]
    in_two_goes(ADAPTER, path)


def test_repeated_command_is_two_turns(read: Any, write: Any) -> None:
    question = "#### /ask Which of the two stones?  \n\n"
    _, turns, _ = read(
        ADAPTER,
        write(
            ".aider.chat.history.md",
            f"# aider chat started at 2026-11-18 09:00:00\n\n{question * 2}",
        ),
    )
    assert [turn.text for turn in turns] == ["Which of the two stones?"] * 2
