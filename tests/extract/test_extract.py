"""What a session without a model yields: few memories, typed, in the owner's own words."""

from __future__ import annotations

from dataclasses import replace
from time import process_time

import pytest

from nacre.extraction.reading.cues import languages
from nacre.extraction.reading.sentences import split
from nacre.values.memory import Expiry, Kind
from nacre.values.session import Flag, SessionKind, Speaker, ToolCall, Trust
from tests.extract.conftest import SESSION, agent, memories, only, owner

# --- kinds ---


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("We decided to run the ledger on PostgreSQL because it needs transactions.", Kind.DECISION),
        ("Let's go with Redis streams instead of Kafka for the job queue.", Kind.DECISION),
        ("I want to use Vite with React for the admin panel.", Kind.DECISION),
        ("Session cookies should be httpOnly, not readable from JavaScript.", Kind.DECISION),
        ("We're moving the ledger from SQLite to PostgreSQL.", Kind.DECISION),
        ("We moved the handbook from Sphinx to MkDocs.", Kind.DECISION),
        ("Switched the queue from rabbitmq to nats.", Kind.DECISION),
        ("Let's move from Jest to Vitest.", Kind.DECISION),
        ("We send an alert when a pump stops, because the cellar floods within an hour.", Kind.DECISION),
        ("If an amount is missing, we reject the order because nobody can book it.", Kind.DECISION),
        ("Let's raise the alarm when three readings in a row are missing.", Kind.DECISION),
        ("We store prices in cents, not floats: rounding has cost us money.", Kind.DECISION),
        ("I prefer small pull requests over one big branch.", Kind.PREFERENCE),
        ("Commit messages should start with a verb.", Kind.PREFERENCE),
        ("Never push directly to the main branch.", Kind.PREFERENCE),
        ("From now on run the linter before each commit.", Kind.PREFERENCE),
        ("Make sure all public functions have docstrings.", Kind.PREFERENCE),
        ("Use tabs for everything in this repo.", Kind.PREFERENCE),
        ("We use pnpm workspaces for the frontend packages.", Kind.FACT),
        ("The staging server is hosted at Hetzner in Falkenstein.", Kind.FACT),
        ("Marta is our product manager.", Kind.RELATIONSHIP),
        ("We shipped the new billing page on Monday.", Kind.EVENT),
        ("TODO: rotate the signing keys of the webhook.", Kind.TODO),
        ("Don't forget to renew the domain before June.", Kind.TODO),
        ("We need to migrate the old invoices later, after the audit.", Kind.TODO),
        ("The root cause of the flaky upload test was a shared temp folder.", Kind.LESSON),
        ("以后提交信息都用英文写。", Kind.PREFERENCE),
        ("永远不要直接推送到 main 分支!", Kind.PREFERENCE),
        ("我们决定用 PostgreSQL 存储账单数据,而不是 MongoDB。", Kind.DECISION),
        ("我们把日志存在对象存储里，而不是本地磁盘。", Kind.DECISION),
        ("后端用的是 FastAPI 和 Redis,部署在阿里云。", Kind.FACT),
        ("登录接口超时的根本原因是连接池太小。", Kind.LESSON),
        ("别忘了发布之前更新 CHANGELOG 文件。", Kind.TODO),
        ("王芳是我们的产品经理,有需求问题找她。", Kind.RELATIONSHIP),
        ("我们上周上线了新的计费系统。", Kind.EVENT),
    ],
)
def test_a_plain_statement_of_the_owner_becomes_a_memory_of_its_kind(said: str, kind: Kind) -> None:
    found = only(owner(said))

    assert found.kind is kind
    assert found.content == said
    assert found.turns == ("t0",)
    assert found.speaker is Speaker.OWNER


def test_a_memory_has_a_subject_and_tags_a_person_would_write() -> None:
    found = only(owner("We use PostgreSQL for the billing service."))

    assert found.subject == "PostgreSQL for the billing service"
    assert found.tags == ("postgres", "payments")
    assert found.canonical_key == "billing-service-database"


def test_a_chinese_memory_has_a_subject() -> None:
    assert only(owner("以后提交信息都用英文写。")).subject == "提交信息"


def test_there_is_no_key_where_the_thing_is_not_obvious() -> None:
    assert only(owner("I prefer small pull requests over one big branch.")).canonical_key is None


def test_conversational_beginnings_and_ends_are_trimmed() -> None:
    assert only(owner("ok, well, never mock the database in tests please")).content == (
        "Never mock the database in tests"
    )


# --- remember, importance, expiry ---


@pytest.mark.parametrize(
    ("said", "content"),
    [
        (
            "Remember that the demo account must stay on the old plan.",
            "The demo account must stay on the old plan.",
        ),
        (
            "Please keep in mind: our customers read the release notes.",
            "Our customers read the release notes.",
        ),
        ("请记住:生产环境的数据库部署在上海区。", "生产环境的数据库部署在上海区。"),
        ("记住：生产环境的数据库部署在上海区。", "生产环境的数据库部署在上海区。"),
        ("请记住，生产环境的数据库部署在上海区。", "生产环境的数据库部署在上海区。"),
        ("别忘了：发布之前要更新中文文档。", "发布之前要更新中文文档。"),
    ],
)
def test_what_is_to_be_remembered_weighs_eight(said: str, content: str) -> None:
    found = only(owner(said))

    assert (found.content, found.importance) == (content, 8)


def test_remember_this_points_at_the_statement_before() -> None:
    found = only(owner("The release train leaves every second Tuesday. Remember this."))

    assert "release train" in found.content
    assert found.importance == 8


def test_at_most_two_memories_of_a_session_weigh_eight() -> None:
    found = memories(
        owner("Never commit generated files."),
        owner("Always sign the release artefacts."),
        owner("Never log customer names."),
    )

    assert sorted(one.importance for one in found) == [7, 8, 8]


def test_what_is_to_be_remembered_goes_before_rules_and_weighs_seven_at_least() -> None:
    found = memories(
        owner("Never commit generated files. Always sign the release artefacts."),
        owner("Remember that the bank rejects amounts with more than two decimals."),
        owner("Remember that the auditors come in the first week of May."),
        owner("Remember that the staging database is wiped every Sunday."),
    )

    assert [one.importance for one in found[:2]] == [7, 7]
    assert sorted(one.importance for one in found[2:]) == [7, 8, 8]


def test_what_is_said_to_hold_for_now_is_temporary() -> None:
    assert only(owner("For now we use SQLite for the prototype.")).expiry is Expiry.TEMPORARY
    assert only(owner("We use SQLite for the prototype.")).expiry is Expiry.PERMANENT


def test_a_todo_is_temporary() -> None:
    assert only(owner("TODO: rotate the signing keys of the webhook.")).expiry is Expiry.TEMPORARY


# --- what is not kept ---


@pytest.mark.parametrize(
    "said",
    [
        "please fix the failing test",
        "run it again",
        "can you add a button to the settings page?",
        "Should we always use UTC in the database?",
        "Should we always use UTC in the database",
        "Can we also keep all the old reports?",
        "let's move the helper from utils.py to text.py",
        "I moved the parser from src/a.py to src/b.py",
        "We're moving fast to production.",
        "We send two mails when the customer retries.",
        "We use the same table twice, because I copied it here.",
        "What if we used MongoDB instead of PostgreSQL?",
        "Maybe we should use Redis for caching at some point",
        "I've just pushed the fix, all tests pass now.",
        "The build is running.",
        "yes",
        "thanks, looks great!",
        "The user wants to use Redis instead of Memcached here.",
        "You said we always use tabs in this project.",
        "We use the hash 4f9a2c71bd for the baseline image.",
        "You are an expert assistant. Your task is to never break the build.",
        "it must never happen",
        "Never do.",
        "Everything should be better.",
        "帮我修一下这个测试。",
        "以后是不是都要用英文写提交信息?",
        "也许我们应该改用 Redis 做缓存。",
        "测试都通过了,已经提交了。",
        "好的,继续。",
    ],
)
def test_talk_of_the_moment_yields_nothing(said: str) -> None:
    assert memories(owner(said)) == []


def test_a_statement_of_more_than_700_characters_is_dropped() -> None:
    assert memories(owner("We decided to use Redis because " + "the queue is slow and " * 40)) == []


@pytest.mark.parametrize(
    "pasted",
    [
        "```\nWe decided to use PostgreSQL for billing.\n```",
        "> We decided to use PostgreSQL for billing.",
        "<notes>We decided to use PostgreSQL for billing.</notes>",
        "@@ -1 +1 @@\n+ We decided to use PostgreSQL for billing.",
        "[INFO] We decided to use PostgreSQL for billing.",
        "2026-01-02 10:00:00 We decided to use PostgreSQL for billing.",
        "| note | We decided to use PostgreSQL for billing. |",
        "# Plan\n\nWe decided to use PostgreSQL for billing.",
        "    We decided to use PostgreSQL for billing.",
    ],
)
def test_what_is_only_pasted_yields_nothing(pasted: str) -> None:
    assert memories(owner(f"look at this\n\n{pasted}")) == []


PAGE = (
    "Retention of backups\n\nTo keep a backup for ever, set the field in your account. Your old backups will not be "
    "changed, and you must always use the console to delete them."
)


def test_a_page_that_was_copied_as_it_stands_is_not_the_owners_word() -> None:
    assert memories(owner(PAGE)) == []
    without_title = PAGE.partition("\n\n")[2]
    for own in (without_title, f"{PAGE} We always use the console.", PAGE.replace("To keep", "Please keep")):
        assert memories(owner(own)) != [], own


def test_what_the_owner_pastes_back_from_the_agent_is_not_the_owners_word() -> None:
    found = memories(
        agent("Findings:\n1. We always use two spaces in the templates, which breaks the parser."),
        owner("look into\n1. We always use two spaces in the templates, which breaks the parser."),
    )

    assert found == []


def test_only_the_beginning_and_end_of_a_long_message_count() -> None:
    filler = "\n".join(f"- entry {number} of the long reference list" for number in range(40))
    frame = ("Never commit the vendor folder.", "Prices must be in cents, not euros.")
    message = f"{frame[0]}\n{filler}\n- We decided to drop IE.\n{filler}\n{frame[1]}"

    assert [one.content for one in memories(owner(message))] == [
        "Never commit the vendor folder.",
        "Prices must be in cents, not euros.",
    ]


@pytest.mark.parametrize("flags", [Flag.META, Flag.SUMMARY, Flag.SIDECHAIN])
def test_turns_that_nobody_said_yield_nothing(flags: Flag) -> None:
    assert memories(owner("Never push directly to the main branch.", flags)) == []


def test_the_agents_own_words_yield_nothing() -> None:
    assert memories(agent("We decided to use PostgreSQL because it has transactions.")) == []


@pytest.mark.parametrize("kind", [SessionKind.SUBAGENT, SessionKind.SCHEDULED, SessionKind.HEARTBEAT])
def test_sessions_that_are_not_the_owners_yield_nothing(kind: SessionKind) -> None:
    session = replace(SESSION, kind=kind)

    assert memories(owner("Never push directly to the main branch."), session=session) == []


def test_an_owner_turn_that_draws_on_outside_text_yields_nothing() -> None:
    turn = replace(owner("Never push directly to the main branch."), trust=Trust.UNTRUSTED)

    assert memories(turn) == []


# --- standing alone ---


def test_a_statement_that_leans_on_the_one_before_takes_it_in() -> None:
    found = only(owner("The importer reads CSV files from the bank. It must never write to the production database."))

    assert found.content == (
        "The importer reads CSV files from the bank. It must never write to the production database."
    )


def test_a_statement_that_leans_on_nothing_is_dropped() -> None:
    assert memories(owner("it should always be done like that, never the other way")) == []


def test_a_reason_is_kept_with_its_decision() -> None:
    found = only(owner("We decided to drop Celery. Because nobody could debug the workers."))

    assert found.content.endswith("Because nobody could debug the workers.")


@pytest.mark.parametrize(
    "order",
    [
        "Please note that in the handbook.",
        "Can you mention this in the runbook?",
        "Put that into the docs and commit it.",
        "and tell it to the others please",
        "Keep that in mind for later projects.",
    ],
)
def test_an_order_to_the_agent_is_no_part_of_a_decision(order: str) -> None:
    decision = "We decided to drop Celery because nobody could debug the workers."
    found = only(owner(f"{decision} {order}"))

    assert found.content == decision


def test_what_follows_a_statement_is_a_sentence_of_its_own() -> None:
    found = only(owner("Never deploy on Fridays. it breaks the rota of the weekend"))

    assert found.content == "Never deploy on Fridays. It breaks the rota of the weekend"


@pytest.mark.parametrize(
    ("before", "choice"),
    [
        ("The parcels need a label printer.", "We're going with Zebra instead of Brother, because of the drivers."),
        ("We still have to choose a map for the riders.", "Let's use MapLibre rather than Leaflet, since it tilts."),
        ("Which index do we take for the search?", "We go with an in-process one over Solr because there is one host."),
        ("Now the map for the riders.", "Let's use MapLibre rather than Leaflet, since it tilts."),
        ("搜索包裹需要一个索引。", "我们决定用 Tantivy，因为它不需要 JVM。"),
    ],
)
def test_a_choice_that_does_not_say_for_what_takes_in_what_was_needed(before: str, choice: str) -> None:
    found = only(owner(f"{before} {choice}"))

    assert found.kind is Kind.DECISION
    assert found.content.startswith(before)
    assert found.content.endswith(choice)


@pytest.mark.parametrize(
    ("before", "choice"),
    [
        ("We need to ship on Friday.", "We're going with Zebra for the labels instead of Brother, as it is cheaper."),
        ("The build of the labels is green.", "We're going with Zebra instead of Brother, because of the drivers."),
        ("I had lunch with the couriers.", "We're going with Zebra instead of Brother, because of the drivers."),
    ],
    ids=["it says for what", "status", "nothing was needed"],
)
def test_a_choice_stands_alone_where_it_can(before: str, choice: str) -> None:
    assert only(owner(f"{before} {choice}")).content == choice


def test_a_short_wish_is_read_with_its_request() -> None:
    found = only(owner("Let's design the login. I want passkeys and JWT tokens."))

    assert found.content == "Let's design the login. I want passkeys and JWT tokens."


def test_items_of_a_list_are_statements_led_by_the_line_before() -> None:
    found = memories(owner("Please always:\n- run the linter before the commit\n- write the changelog in English"))

    assert len(found) == 2
    assert all(one.kind is Kind.PREFERENCE for one in found)


def test_a_statement_may_lean_on_the_message_before() -> None:
    found = memories(
        owner("The importer reads the files of the bank."), agent("Yes."), owner("It must never write to production.")
    )

    assert [one.content for one in found] == [
        "The importer reads the files of the bank. It must never write to production."
    ]


def test_lines_of_another_language_in_a_message_are_pasted() -> None:
    assert memories(owner("看一下这个报错。\nAlways restart the master before you touch the replica.")) == []


# --- answers ---

_OPTIONS = """Two ways to go. Where should the uploads be stored?

A) On the local disk of the server
B) In an S3 bucket with a lifecycle rule
"""


@pytest.mark.parametrize("answer", ["B", "B.", "option B please", "let's go with B", "the second", "b)"])
def test_an_answer_that_points_is_completed_with_the_option(answer: str) -> None:
    found = only(agent(_OPTIONS), owner(answer))

    assert found.kind is Kind.DECISION
    assert found.content == "Where should the uploads be stored? In an S3 bucket with a lifecycle rule"
    assert found.turns == ("t0", "t1")


def test_a_chinese_answer_that_points_is_completed() -> None:
    found = only(agent("上传的文件应该存在哪里?\n\n方案A:服务器本地磁盘\n方案B:对象存储桶"), owner("选B"))

    assert "对象存储桶" in found.content


def test_yes_is_completed_with_the_question_it_answers() -> None:
    found = only(agent("I looked at the schema. Should every amount be stored in cents?"), owner("yes"))

    assert found.content == "Should every amount be stored in cents? Yes"


@pytest.mark.parametrize(
    "question",
    [
        "Want me to add the tests for the parser as well?",
        "Should I commit the changes now?",
        "Ready to implement the importer?",
        "Does this look right?",
        "Shall I proceed with option A?",
    ],
)
def test_a_yes_to_an_errand_yields_nothing(question: str) -> None:
    assert memories(agent(question), owner("yes please")) == []


def test_an_article_does_not_choose_option_a() -> None:
    assert memories(agent(_OPTIONS), owner("a quick look at the logs first")) == []


def test_an_answer_that_points_at_untrusted_words_yields_nothing() -> None:
    assert memories(agent(_OPTIONS, trust=Trust.UNTRUSTED), owner("B")) == []


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which database should the ledger use?", "We decided to use PostgreSQL for the ledger."),
        ("标题应该存成拼音还是中文?", "我们决定标题只保存中文原文。"),
    ],
)
def test_a_complete_statement_is_kept_without_the_question_before_it(question: str, answer: str) -> None:
    found = only(agent(question), owner(answer))

    assert found.content == answer
    assert found.turns == ("t1",)


@pytest.mark.parametrize("answer", ["We don't need to publish", "yes, but we don't need to publish"])
def test_an_answer_that_says_too_little_is_not_filled_up_with_an_errand(answer: str) -> None:
    assert memories(agent("Shall I put the notes into `docs/notes.md` and publish them?"), owner(answer)) == []


def test_items_that_answer_options_one_by_one_are_completed() -> None:
    found = memories(
        agent("One question: Should the export be:\n\nA) A nightly job\nB) Triggered by the customer"),
        owner("A) that's for the accounting team, on the first of the month\n\nB) later, as a separate feature"),
    )

    assert "A nightly job" in found[0].content
    assert "accounting team" in found[0].content
    assert found[1].kind is Kind.TODO


def test_a_question_put_by_a_tool_is_kept_with_its_answer() -> None:
    found = only(owner("The build warns about old findings. What shall we do? → trunk had none; fix them"))

    assert found.content == "The build warns about old findings. What shall we do? Trunk had none; fix them"


# --- corrections ---


def test_a_correction_is_kept() -> None:
    found = only(
        agent("The nightly job runs at midnight UTC."),
        owner("no, that's wrong, the nightly job runs at midnight Berlin time."),
    )

    assert "Berlin" in found.content


def test_the_words_that_decline_a_tool_call_weigh_more() -> None:
    words = "I think we should separate the parser from the writer."
    declined = (ToolCall("Edit", "parser.py", "rejected"),)

    assert memories(owner(words)) == []
    assert only(agent("I'll merge them.", calls=declined), owner(words)).kind is Kind.DECISION


def test_the_words_in_a_rejected_outcome_are_the_owners() -> None:
    declined = (ToolCall("Bash", "git commit -n", "rejected: never skip the pre-commit hook"),)

    found = only(agent("Committing.", calls=declined))

    assert found.content == "Never skip the pre-commit hook"
    assert found.turns == ("t0",)


def test_the_arguments_of_a_slash_command_are_the_owners_words() -> None:
    found = only(owner("/execute-plan keep each commit small and working", Flag.COMMAND))

    assert found.content == "Keep each commit small and working"


# --- lessons ---


def test_a_cause_the_owner_confirmed_becomes_a_lesson() -> None:
    found = only(
        owner("The importer crashes on the bank file since yesterday."),
        agent("Root cause: the bank now sends a byte order mark at the beginning of the file. I strip it now."),
        owner("that fixed it, thanks"),
    )

    assert found.kind is Kind.LESSON
    assert found.content.startswith("The importer crashes on the bank file")
    assert "byte order mark" in found.content
    assert found.speaker is Speaker.AGENT
    assert found.importance <= 6
    assert found.turns == ("t0", "t1", "t2")


def test_a_chinese_lesson_is_kept() -> None:
    found = only(
        owner("导入银行文件的时候程序总是崩溃。"),
        agent("根本原因是文件开头多了一个字节顺序标记,解析器没有跳过它。"),
        owner("好了,修好了。"),
    )

    assert found.kind is Kind.LESSON
    assert "字节顺序标记" in found.content


@pytest.mark.parametrize("reply", ["still the same error", "no, that's not it", "hm, ok"])
def test_a_cause_the_owner_did_not_confirm_is_no_lesson(reply: str) -> None:
    found = memories(
        owner("The importer crashes on the bank file since yesterday."),
        agent("Root cause: the bank now sends a byte order mark at the beginning of the file."),
        owner(reply),
    )

    assert found == []


def test_a_guess_or_a_quotation_from_outside_is_no_lesson() -> None:
    problem, confirmed = owner("The importer crashes on the bank file."), owner("that fixed it")
    guess = "The root cause is probably a byte order mark at the beginning."
    certain = "The root cause is a byte order mark at the beginning of the file."

    assert memories(problem, agent(guess), confirmed) == []
    assert memories(problem, agent(certain, trust=Trust.UNTRUSTED), confirmed) == []


def test_the_owners_own_explanation_is_a_lesson_of_the_owner() -> None:
    found = only(
        owner("The webhook fails in production with a bad signature."),
        agent("Let me look at the handler."),
        owner("That fixed it. The issue was that we decoded the body before checking the signature."),
    )

    assert found.speaker is Speaker.OWNER
    assert "decoded the body" in found.content


@pytest.mark.parametrize(
    "trouble",
    [
        "The nightly export takes 40 minutes since last week.",
        "The cellar pump has sent nothing since noon.",
        "The importer silently drops rows with umlauts.",
        "The worker hangs after the third upload.",
    ],
)
def test_the_cause_is_looked_for_a_few_turns_back_and_a_bare_confirmation_is_no_content(trouble: str) -> None:
    cause = "Root cause: the index on the time of the order is missing, so each page reads the whole table."
    found = only(
        owner(trouble),
        agent(cause),
        owner("add the index then"),
        agent("Added."),
        owner("Yes, that was it. Put it on staging, too."),
    )

    assert found.content == f"{trouble} {cause}"
    assert found.turns == ("t0", "t1", "t4")


def test_a_cause_that_the_owner_refuted_meanwhile_is_not_taken_up_again() -> None:
    found = memories(
        owner("The worker hangs after the third upload."),
        agent("Root cause: the connection pool is too small for three uploads at once."),
        owner("no, that's not it, still the same"),
        agent("Then I restart it."),
        owner("ok, that fixed it"),
    )

    assert found == []


def test_the_owners_cause_needs_no_confirmation_beside_it() -> None:
    found = only(
        owner("The site build is far too slow on CI."),
        agent("I changed the key of the cache."),
        owner("That fixed it: down to a minute. The root cause was the date in the key of the cache."),
    )

    assert found.content == (
        "The site build is far too slow on CI. The root cause was the date in the key of the cache."
    )


_TROUBLE = owner("The label printer prints every slip twice since the update.")
_CAUSE = "## Root cause\n\nThe spooler and the driver both retry after the first page. Only the spooler does now."


@pytest.mark.parametrize("wrap_up", ["commit and push please", "great, thanks!", "ok, open a PR", "perfect, merge it"])
def test_work_that_the_owner_has_finished_bears_its_cause_out(wrap_up: str) -> None:
    found = only(_TROUBLE, agent(_CAUSE), owner(wrap_up))

    assert found.kind is Kind.LESSON
    assert found.content.startswith("The label printer prints every slip twice")
    assert "The spooler and the driver both retry" in found.content
    assert (found.speaker, found.turns) == (Speaker.AGENT, ("t0", "t1", "t2"))


@pytest.mark.parametrize(
    "wrap_up", ["push? it still prints twice", "and now the other one", "thanks, but it still happens"]
)
def test_work_that_goes_on_bears_nothing_out(wrap_up: str) -> None:
    assert memories(_TROUBLE, agent(_CAUSE), owner(wrap_up)) == []


def test_what_works_differently_now_is_the_lesson_where_no_cause_is_told() -> None:
    told = agent("The printer now waits for the acknowledgement of the spooler instead of sending the page again.")

    assert only(_TROUBLE, told, owner("perfect, commit it")).kind is Kind.LESSON
    assert memories(owner("look at the spooler"), told, owner("perfect, commit it")) == []


def test_a_command_that_failed_and_works_after_the_explanation_bears_it_out() -> None:
    def ran(outcome: str) -> ToolCall:
        return ToolCall("Bash", "make slips", outcome)

    cause = "The cause is the locale: the template is read as latin-1 when LANG is not set."
    turns = (_TROUBLE, agent("I run it.", calls=(ran("exit 2"),)), agent(cause))

    assert "latin-1" in only(*turns, agent("Again.", calls=(ran("ok"),)), owner("next: the invoices")).content
    assert memories(*turns, agent("Again.", calls=(ran("exit 2"),)), owner("next: the invoices")) == []
    assert memories(*turns, agent("Again.", calls=(ran("ok"),)), owner("no, still the same")) == []


# --- reversals ---


def test_a_choice_that_is_scrapped_by_name_is_dropped() -> None:
    found = only(
        owner("Let's go with Celery for the nightly jobs, we know it."),
        owner("Scrap celery, we go with plain cron, one machine is all we have."),
    )

    assert "cron" in found.content


def test_what_the_same_message_takes_back_is_dropped() -> None:
    assert memories(owner("Let's use Redis for the sessions. No wait, forget that.")) == []


def test_the_last_of_several_reversals_counts() -> None:
    found = only(
        owner("Let's use MySQL for the billing service."),
        owner("Let's use MongoDB for the billing service instead."),
        owner("Actually let's use PostgreSQL for the billing service instead of MongoDB."),
    )

    assert "PostgreSQL" in found.content


@pytest.mark.parametrize(
    "undo", ["never mind", "actually, revert that", "scratch that, bad idea", "ok, undo that please"]
)
def test_what_is_taken_back_at_once_is_dropped(undo: str) -> None:
    assert memories(owner("Let's keep the old parser around for reference."), owner(undo)) == []


def test_a_decision_whose_object_is_removed_later_is_dropped() -> None:
    found = memories(
        owner("Let's keep the legacy parser files next to the new ones."),
        agent("Done."),
        owner("remove the legacy parser files"),
    )

    assert found == []


def test_the_same_said_again_is_one_memory() -> None:
    found = memories(
        owner("Never push directly to the main branch."),
        agent("Understood."),
        owner("Never push directly to the main branch!"),
    )

    assert len(found) == 1


# --- the whole ---


def test_only_what_has_evidence_in_new_turns_is_returned() -> None:
    turns = (
        owner("Never push directly to the main branch."),
        agent("Understood."),
        owner("We decided to drop Celery because of the workers."),
    )

    assert len(memories(*turns)) == 2
    assert [one.turns for one in memories(*turns, begin=1)] == [("t2",)]
    assert memories(*turns, begin=3) == []


def test_a_session_yields_at_most_six_memories_the_surest_first() -> None:
    things = ["invoices", "ledgers", "webhooks", "emails", "reports", "uploads", "exports", "imports"]
    turns = [owner(f"Never delete {thing} without a backup from last night.") for thing in things]
    weak = owner("We use pnpm workspaces for frontend packages.")

    found = memories(weak, *turns)

    assert len(found) <= 6
    assert all(one.kind is Kind.PREFERENCE for one in found)


def test_the_same_turns_give_the_same_memories() -> None:
    turns = (owner("Never push to main. We use pnpm for the frontend. I prefer small commits over big ones."),)

    assert memories(*turns) == memories(*turns)


def test_a_language_is_a_file() -> None:
    assert {one.language for one in languages()} == {"en", "zh"}


def test_japanese_is_not_read_as_chinese() -> None:
    assert memories(owner("以後コミットメッセージは必ず英語で書いてください。")) == []


def test_a_message_is_split_into_its_statements() -> None:
    text = "Use uv, e.g. for the venv. It is fast!\n\n- first item\n2) second (one. two) item\n我们用 Redis。很快!"

    assert [one.text for one in split(text)] == [
        "Use uv, e.g. for the venv.",
        "It is fast!",
        "first item",
        "second (one. two) item",
        "我们用 Redis。",
        "很快!",
    ]


# --- ways of working ---


def test_what_is_asked_for_again_and_again_is_a_preference() -> None:
    asking = [f"read the src/{name}.py file in full, then tell me what it does" for name in ("a", "b", "c")]

    found = only(*[owner(text) for text in asking])

    assert found.kind is Kind.PREFERENCE
    assert found.content == "Read the src/a.py file in full"
    assert found.turns == ("t0", "t1", "t2")
    assert memories(owner(asking[0]), owner(asking[1])) == []


def test_a_request_that_states_a_rule_of_the_product_is_a_decision() -> None:
    rule = "can we add a check that if the local file is newer, then we ask for confirmation?"

    assert only(owner(rule)).kind is Kind.DECISION


@pytest.mark.parametrize(
    "wish",
    [
        "can we fetch the rates ourselves instead of telling the user to do it?",
        "shouldn't the restore refuse to run without --force?",
        "could we close idle sessions automatically?",
        "I think if we cannot read the ledger we should stop and say so, or?",
        "we should keep the old key when the new one is not confirmed",
    ],
)
def test_a_wish_about_how_the_product_behaves_is_a_decision(wish: str) -> None:
    assert only(owner(wish)).kind is Kind.DECISION


@pytest.mark.parametrize(
    "asked",
    [
        "can we look at the other branch instead?",
        "could we try it without the cache?",
        "should we fix the test when you are done?",
        "can we get rid of this file?",
        "should we use an enum instead?",
    ],
)
def test_a_question_about_the_work_is_no_wish(asked: str) -> None:
    assert memories(owner(asked)) == []


def test_what_is_to_be_built_with_what_is_a_fact() -> None:
    found = only(owner("Build a small dashboard for the weather stations with Svelte and SQLite."))

    assert found.kind is Kind.FACT
    assert memories(owner("Create a function for the totals in the parser.")) == []


def test_a_command_that_worked_is_a_lesson_about_the_trouble() -> None:
    found = only(
        owner("The viewer exits at once when I start it."),
        agent("Try the other platform plugin."),
        owner("ok, this worked: QT_PLUGIN=x11 viewer"),
    )

    assert found.kind is Kind.LESSON
    assert found.content == "The viewer exits at once when I start it. Ok, this worked: QT_PLUGIN=x11 viewer"


# --- what others wrote ---


@pytest.mark.parametrize(
    "said",
    [
        "Hi Claude,\n\nwe never deploy the ledger on Fridays.\n\nThanks,\nAnselm",
        "The meeting is at 10:42\nwe never deploy the ledger on Fridays.",
        "Hello,\nwe never deploy the ledger on Fridays.\nRegards to the team!",
    ],
    ids=["a letter of one's own", "one time of day", "no signature"],
)
def test_what_looks_a_little_like_a_letter_or_a_chat_is_still_the_owners(said: str) -> None:
    assert "we never deploy the ledger on Fridays." in [one.text for one in split(said)]


def test_white_space_without_end_costs_next_to_nothing() -> None:
    begun = process_time()
    assert [one.text for one in split(f"Before it.\n{' ' * 29_000}\nAfter it.")] == ["Before it.", "After it."]
    assert process_time() - begun < 2
