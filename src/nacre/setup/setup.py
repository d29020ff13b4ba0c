"""Propose a writer, set nacre up, and run the quickstart."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from nacre.base.frozen import frozen
from nacre.care.health import Status, status_of
from nacre.errors import ModelRefusedError
from nacre.home.home import Home, open_home
from nacre.home.spending import DAILY, NONE, is_by_subscription
from nacre.known_settings import setting_of
from nacre.learn import discovery
from nacre.learn import ingest as planning
from nacre.learn.estimate import Estimate
from nacre.learn.ingest import IngestOptions, ingest
from nacre.llm.credentials import (
    API_KEY,
    Provider,
    credential_for,
    provider_of,
    providers,
)
from nacre.llm.failures import absence, key_of_billing
from nacre.llm.providers import describe, list_proposed, servers_here
from nacre.memories.vectors import embed_pending
from nacre.operations import operation
from nacre.settings import Settings
from nacre.setup import examples
from nacre.setup.models import (
    TOKENS_A_DAY,
    obstacle_to,
    programs,
    status_writer,
)
from nacre.values.models import Price
from nacre.values.reports import IngestPlan, IngestReport, OnProgress


@frozen
class FoundWriter:
    """A model that can be the writer, as ``provider:model``, with a label.

    ``payer``: source of the billed API key, or empty for a subscription or free model. ``problem``:
    why the model might not answer. ``is_refused``: the model cannot be set until the problem is
    fixed. ``is_here``: it runs on this machine.
    """

    name: str
    label: str
    payer: str = ""
    is_free: bool = False
    problem: str = ""
    is_refused: bool = False
    is_here: bool = False


def found_writers(settings: Settings) -> list[FoundWriter]:
    """Return the models that could be the writer, those with problems last."""
    writers = [writer_named(settings, name) for name in dict.fromkeys(_names(settings))]
    return sorted(writers, key=lambda writer: (writer.is_refused, bool(writer.problem)))


def best_writer(writers: list[FoundWriter]) -> FoundWriter | None:
    """Return the first writer that can be set, or ``None``."""
    return next((writer for writer in writers if not writer.is_refused), None)


def writer_named(settings: Settings, name: str) -> FoundWriter:
    """Return the writer for a model's name. Raises ModelRefusedError for an unknown provider."""
    provider, model = provider_of(settings, name.partition(":")[0]), name.partition(":")[2]
    label = f"{provider.label}, {'its default model' if model in ('', 'default') else model}"
    problem, is_here = obstacle_to(settings, name), provider.is_here
    if problem:
        return FoundWriter(name, label, problem=problem.with_hint, is_refused=True, is_here=is_here)
    target, able = describe(settings, name)
    payer = key_of_billing(settings, provider) or (
        target.credential.origin if target.credential else ""
    )
    return FoundWriter(
        name, label, payer, able.price == Price(), absence(settings, provider), is_here=is_here
    )


def _names(settings: Settings) -> Iterator[str]:
    for name in programs(settings):
        yield f"{name}:{list_proposed(provider_of(settings, name))[0]}"
    with suppress(ModelRefusedError):  # models.providers is invalid
        for name, models in servers_here(settings).items():
            # Ollama also lists models that run remotely.
            yield from [f"{name}:{item}" for item in models if not item.endswith("cloud")][:1]
        yield from (
            f"{item.name}:{list_proposed(item)[0]}"
            for item in providers(settings).values()
            if _has_key(settings, item)
        )


def _has_key(settings: Settings, provider: Provider) -> bool:
    if not provider.needs_key or not list_proposed(provider):
        return False
    with suppress(ModelRefusedError):
        credential = credential_for(settings, provider.name)
        return credential is not None and credential.kind == API_KEY
    return False


@frozen
class WriterProposal:
    """A proposed writer, its limits, and the alternatives."""

    writer: FoundWriter
    tokens_per_day: int | None
    dollars_per_day: float | None
    alternatives: tuple[FoundWriter, ...] = ()

    @property
    def terms(self) -> str:
        """Return a phrase with the writer's daily limit and the key that is billed."""
        if self.tokens_per_day is not None:
            most = f"{self.tokens_per_day:,} tokens a day"
            return f"stops at {most} (the last answer may exceed this slightly)"
        if self.writer.is_free:
            return "costs nothing"
        billing = f", billed to the key in {self.writer.payer}" if self.writer.payer else ""
        return (
            f"never costs more than US$ {self.dollars_per_day:,.2f} a day{billing} for all background models "
            "together"
        )


def propose(settings: Settings, name: str | None = None) -> WriterProposal | None:
    """Return a proposal for the writer and its limits, or ``None`` if no model can be the writer.

    The default is the best model on this machine. Raises ModelRefusedError for an unknown provider.
    """
    candidates = [] if name else found_writers(settings)
    writer = writer_named(settings, name) if name else best_writer(candidates)
    if writer is None:
        return None
    is_subscription = is_by_subscription(settings, writer.name)
    dollars = settings.number(DAILY) or float(setting_of(DAILY).default)
    alternatives = tuple(item for item in candidates if item != writer and not item.is_refused)
    return WriterProposal(
        writer,
        TOKENS_A_DAY if is_subscription else None,
        None if is_subscription else dollars,
        alternatives,
    )


# -- The proposal of ``nacre init`` ----------------------------------------------------------------


@frozen
class SetupProposal:
    """The setup steps to propose, besides connecting hosts.

    ``files``, ``bytes``: number and size of the transcripts to read, or 0 if nacre has read some
    before. ``estimate``: cost of reading them with the configured language model, if any.
    ``writer``: proposed if none is set. ``has_examples``: whether the quickstart's example sessions
    will be removed.
    """

    files: int
    bytes: int
    estimate: Estimate | None
    writer: WriterProposal | None
    has_examples: bool

    @property
    def is_nothing(self) -> bool:
        """True if the proposal is empty."""
        return not (self.files or self.writer or self.has_examples)


def propose_setup(home: Home) -> SetupProposal:
    """Return the steps to propose for a home, without storing anything."""
    options = IngestOptions()
    is_new = not examples.has_others(home)
    plan = planning.plan(home, options) if is_new else IngestPlan()
    has_model = home.settings.text("models.default") != NONE and plan.files > 0
    return SetupProposal(
        plan.files,
        plan.bytes,
        planning.estimate(home, options) if has_model else None,
        propose(home.settings) if status_writer(home).state == "off" else None,
        bool(examples.stored_examples(home)),
    )


@contextmanager
def existing_or_temporary_home(settings: Settings) -> Iterator[Home]:
    """Open the home, or a temporary one if it does not exist yet."""
    with ExitStack() as stack:
        if not (settings.server or settings.database.is_file()):
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="nacre-")))
            settings = replace(settings, home=folder, database=folder / settings.database.name)
        yield stack.enter_context(closing(open_home(settings)))


# -- Quickstart ------------------------------------------------------------------------------------


_SAMPLE_SESSIONS = 60
SECONDS_FOR_VECTORS = 10.0
"""Time limit in seconds for computing vectors, which the daemon or the next ingest completes."""

Origin = Literal["discovered", "examples"]


@frozen
class QuickstartResult:
    """The result of a quickstart.

    ``source``: ``examples`` if there are no transcripts on this machine. ``found``: the best
    available writer if none is set. ``has_examples``: whether the home contains example sessions,
    perhaps from an earlier run.
    """

    source: Origin
    report: IngestReport
    status: Status
    found: FoundWriter | None = None
    has_examples: bool = False


@operation("quickstart", writes=True, takes_long=True)
def run_quickstart(
    home: Home,
    on_progress: OnProgress = lambda _: None,
    *,
    seconds_for_vectors: float = SECONDS_FOR_VECTORS,
) -> QuickstartResult:
    """Read the transcripts on this machine. If there are none, read the example sessions.

    A second run adds no duplicates.
    """
    began = time.monotonic()
    source: Origin = "discovered"
    files = [file.path for file in discovery.find(home, (), with_discovery=True).files]
    report = ingest(home, IngestOptions(discover=True, vectors=False), on_progress)
    paths = {str(path) for path in files}
    if not any(item.file in paths for item in home.sessions.newest(limit=_SAMPLE_SESSIONS)):
        source = "examples"
        files = examples.write_examples(home)
        own = ingest(home, IngestOptions(paths=tuple(files), vectors=False), on_progress)
        problems = (*report.problems, *own.problems)
        report = replace(own, problems=problems, unread=report.unread)
    embedded = embed_pending(home, on_progress, seconds=seconds_for_vectors)
    status = status_of(home, with_story=True)
    report = replace(
        report,
        vectors_made=embedded.made,
        vectors_left=embedded.left,
        vectors_note=embedded.note,
        seconds=time.monotonic() - began,
    )
    return QuickstartResult(
        source, report, status, suggest_writer(home), bool(examples.stored_examples(home))
    )


def suggest_writer(home: Home) -> FoundWriter | None:
    """Return the best available writer if no writer is set, otherwise ``None``."""
    is_off = status_writer(home).state == "off"
    return best_writer(found_writers(home.settings)) if is_off else None
