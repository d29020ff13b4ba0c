"""``nacre benchmark``."""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from nacre.bench.extraction.commands import extraction
from nacre.cli import progress
from nacre.cli.command import TEXT, Group, command
from nacre.cli.run import Run
from nacre.errors import InvalidInput
from nacre.values.reports import Progress

if TYPE_CHECKING:
    from nacre.protocols import Embedder

_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_NEW_FOLDER = click.Path(file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_SUITES = click.Choice(["locomo", "longmemeval", "paraphrased", "devmembench", "coding", "pile"])


@click.group(
    "benchmark", cls=Group,
    examples=[
        "nacre benchmark retrieval --suite locomo --data bench",
        "nacre benchmark extraction --misses",
        "nacre benchmark speed --transcripts ~/.claude/projects",
    ],
)  # fmt: skip
def benchmark() -> None:
    """Measure retrieval, silence, context, extraction, claims, redaction, speed, scale and more."""


@command(
    "retrieval",
    examples=[
        "nacre benchmark retrieval --suite locomo --data bench",
        "nacre benchmark retrieval --suite pile --data bench --ablations --json > pile.json",
        "nacre benchmark retrieval --suite longmemeval --data bench --no-vectors",
    ],
)
@click.option("--suite", "name", type=_SUITES, required=True, help="What to ask; pile is all others in one home.")
@click.option("--data", type=_FOLDER, default=".", help="The folder that holds the suites' files; coding needs none.")
@click.option("--cache", type=_NEW_FOLDER, help="Where homes and vectors are kept between runs.")
@click.option("--fresh", is_flag=True, help="Make the homes anew, although nothing changed.")
@click.option("--ablations", is_flag=True, help="Also leave out one ingredient at a time.")
@click.option("--questions", type=click.IntRange(1), help="Ask only so many, evenly chosen.")
@click.option("--no-vectors", is_flag=True, help="Measure the lexical lane alone.")
@click.option("--shards", is_flag=True, help="Keep the full text in shards, as in a home of many turns.")
@click.pass_obj
def retrieval(  # noqa: PLR0913 - the options of a command
    run: Run, name: str, data: Path, cache: Path | None, fresh: bool, ablations: bool, questions: int | None,
    no_vectors: bool, shards: bool,
) -> None:  # fmt: skip
    """Tell how well recall finds what a public benchmark asks for.

    Each haystack gets a home of its own, filled by nacre's own ingest. Nothing is written to your home.
    """
    from nacre.bench.homes import Shelf
    from nacre.bench.machine import describe
    from nacre.bench.report import render_retrieval
    from nacre.bench.retrieval import measure
    from nacre.bench.suites import load_suite

    shelf = Shelf(cache or _default_cache(), vectors=not no_vectors, fresh=fresh, shards=shards)
    with progress.shown(run) as notify:
        result = measure(
            load_suite(name, data), shelf, _bundled_embedder,
            ablations=ablations, questions=questions, notify=notify or (lambda _: None),
        )  # fmt: skip
    machine = describe()
    run.answer(
        {**dataclasses.asdict(result), "machine": dataclasses.asdict(machine)},
        lambda paper: render_retrieval(paper, result, machine),
    )


@command(
    "silence",
    examples=[
        "nacre benchmark silence --suite coding",
        "nacre benchmark silence --suite locomo --data bench --absent never-happened.json",
    ],
)
@click.option("--suite", "name", type=_SUITES, required=True, help="Whose homes to ask.")
@click.option("--data", type=_FOLDER, default=".", help="The folder that holds the suites' files; coding needs none.")
@click.option("--absent", type=_FILE, multiple=True, help="A list of questions that nothing answers, as JSON.")
@click.option("--cache", type=_NEW_FOLDER, help="Where homes and vectors are kept between runs.")
@click.option("--no-vectors", is_flag=True, help="Measure the lexical lane alone.")
@click.pass_obj
def silence(run: Run, name: str, data: Path, absent: tuple[Path, ...], cache: Path | None, no_vectors: bool) -> None:
    """Tell how often recall shows nothing: where nothing is, and where something is.

    Homes are asked what their suite knows to be absent, what another home of the suite is asked, and your own list:
    a JSON array of texts, or of {"question": …, "conversation": …} where only one home is meant.
    """
    from nacre.bench.homes import Shelf
    from nacre.bench.machine import describe
    from nacre.bench.report import render_silence
    from nacre.bench.silence import measure_silence
    from nacre.bench.suites import load_suite

    shelf = Shelf(cache or _default_cache(), vectors=not no_vectors)
    with progress.shown(run) as notify:
        suite = load_suite(name, data)
        result = measure_silence(suite, shelf, _bundled_embedder, absent, notify or (lambda _: None))
    machine = describe()
    run.answer(
        {"suite": name, **dataclasses.asdict(result), "machine": dataclasses.asdict(machine)},
        lambda paper: render_silence(paper, name, result, machine),
    )


@command(
    "redaction",
    examples=[
        "nacre benchmark redaction --misses",
        "nacre benchmark redaction --file labelled.jsonl",
        "nacre benchmark redaction --write set.jsonl",
    ],
)
@click.option("--file", "file", type=_FILE, help="Your own labelled texts: JSON lines with text, family, secrets.")
@click.option("--seed", type=int, help="Make the set from another seed.")
@click.option(
    "--write", "target", type=click.Path(dir_okay=False, path_type=Path), help="Write the set to a file, too."
)
@click.option("--misses", is_flag=True, help="Show what was missed, and what was taken for a secret and is none.")
@click.option("--no-scanner", is_flag=True, help="Leave out the independent scanner.")
@click.pass_obj
def redaction(
    run: Run, file: Path | None, seed: int | None, target: Path | None, misses: bool, no_scanner: bool
) -> None:  # fmt: skip
    """Tell how many secrets redaction takes out, how often it errs, and how fast it is.

    The set is made from patterns and a seed: no real secret is in it. Where kingfisher is installed (pip install
    'nacre[scan]') it looks at the same texts, without asking anybody whether a secret is valid.
    """
    from nacre.bench.machine import describe
    from nacre.bench.redaction.building import SEED, build, read_samples, write_samples
    from nacre.bench.redaction.measuring import measure
    from nacre.bench.redaction.report import redaction_record, render_redaction

    samples = read_samples(file) if file else build(SEED if seed is None else seed)
    if target:
        write_samples(target, samples)
    with progress.shown(run) as notify:
        result = measure(samples, notify or (lambda _: None), with_scanner=not no_scanner)
    machine = describe()
    run.answer(
        {**redaction_record(result), "machine": dataclasses.asdict(machine)},
        lambda paper: render_redaction(paper, result, machine, misses=misses),
    )


@command(
    "speed",
    examples=[
        "nacre benchmark speed --transcripts ~/.claude/projects",
        "nacre benchmark speed --transcripts samples --megabytes 100 --turns 20000 --json",
    ],
)
@click.option("--transcripts", type=_FOLDER, required=True, help="A tree with Claude Code sessions to repeat.")
@click.option("--megabytes", type=click.IntRange(1), default=500, show_default=True, help="Raw transcripts to ingest.")
@click.option("--turns", type=click.IntRange(100), default=100_000, show_default=True, help="Turns to recall from.")
@click.pass_obj
def speed(run: Run, transcripts: Path, megabytes: int, turns: int) -> None:
    """Tell how fast nacre reads, recalls and starts.

    Works in a temporary folder; nothing is written to your home.
    """
    from nacre.bench.machine import describe
    from nacre.bench.report import render_speed
    from nacre.bench.speed import measure

    with tempfile.TemporaryDirectory(prefix="nacre-speed-") as folder, progress.shown(run) as notify:
        result = measure(transcripts, Path(folder), megabytes=megabytes, turns=turns, notify=notify or (lambda _: None))
    machine = describe()
    run.answer(
        {**dataclasses.asdict(result), "machine": dataclasses.asdict(machine)},
        lambda paper: render_speed(paper, result, machine),
    )


@command(
    "scale",
    examples=[
        "nacre benchmark scale --transcripts ~/.claude/projects",
        "nacre benchmark scale --transcripts samples --turns 100000 --json",
    ],
)
@click.option("--transcripts", type=_FOLDER, required=True, multiple=True, help="Sessions to grow a large home from.")
@click.option("--turns", type=click.IntRange(1000), default=1_000_000, show_default=True, help="Turns in the end.")
@click.option("--folder", type=_NEW_FOLDER, help="A new folder on the disk that counts; else a temporary one.")
@click.pass_obj
def scale(run: Run, transcripts: tuple[Path, ...], turns: int, folder: Path | None) -> None:
    """Tell how search grows from a thousand turns to a million.

    Works in a folder of its own; nothing is written to your home. A million turns take about 3 GB and half an hour.
    """
    from nacre.bench.machine import describe
    from nacre.bench.report import render_scale
    from nacre.bench.scale import measure

    if folder and folder.exists():
        raise InvalidInput(f"{folder} is there already", hint="name a folder that is not there yet")
    with tempfile.TemporaryDirectory(prefix="nacre-scale-") as temporary, progress.shown(run) as notify:
        place = folder or Path(temporary)
        result = measure(transcripts, place, turns=turns, notify=notify or (lambda _: None))
    machine = describe()
    run.answer(
        {**dataclasses.asdict(result), "machine": dataclasses.asdict(machine)},
        lambda paper: render_scale(paper, result, machine),
    )


@command(
    "stale",
    examples=[
        "nacre benchmark stale",
        "nacre benchmark stale --no-vectors --json",
        "nacre benchmark stale --through sessions",
    ],
)
@click.option("--data", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Other data of this shape.")
@click.option("--no-vectors", is_flag=True, help="Compare by words alone.")
@click.option(
    "--through",
    type=click.Choice(["store", "sessions"]),
    default="store",
    show_default=True,
    help="Store each statement, or let it be learned from a session.",
)
@click.pass_obj
def stale(run: Run, data: Path | None, no_vectors: bool, through: str) -> None:
    """Tell whether what changed replaces what was true before, and nothing else.

    Works in a temporary folder; nothing is written to your home.
    """
    from nacre.bench.stale import load, measure
    from nacre.bench.stale_report import render_stale

    with tempfile.TemporaryDirectory(prefix="nacre-stale-") as folder, progress.shown(run) as notify:
        result = measure(
            load(data), Path(folder), None if no_vectors else _bundled_embedder, through=through,
            notify=notify or (lambda _: None),
        )  # fmt: skip
    run.answer(dataclasses.asdict(result), lambda paper: render_stale(paper, result))


@command("claims", examples=["nacre benchmark claims", "nacre benchmark claims --data mine.json --json"])
@click.option("--data", type=_FILE, help="Other cases of this shape.")
@click.pass_obj
def claims(run: Run, data: Path | None) -> None:
    """Tell how well the model that is set for claims tells what memories claim.

    It costs what so many calls cost; nothing is written to your home but that.
    """
    from nacre.bench.judging import ClaimData, load, measure_claims
    from nacre.bench.judging_report import render_claims
    from nacre.errors import ModelRefused
    from nacre.spending.models import model_for
    from nacre.values.model_calls import Task

    model = model_for(run.home, Task.CLAIMS, background=False)
    if model is None:
        raise ModelRefused("no language model is set", hint="nacre config set models.claims PROVIDER:MODEL")
    with progress.shown(run) as notify:
        result = measure_claims(load(data, "claims", ClaimData), model, notify or (lambda _: None))
    run.answer(dataclasses.asdict(result), lambda paper: render_claims(paper, result))


@command(
    "judge",
    examples=[
        "nacre benchmark judge",
        "nacre benchmark judge --rules",
        "nacre benchmark judge --data mine.json --json",
    ],
)
@click.option("--data", type=_FILE, help="Other cases of this shape.")
@click.option("--rules", "only_rules", is_flag=True, help="Ask no model, although one is set.")
@click.pass_obj
def judge(run: Run, data: Path | None, only_rules: bool) -> None:
    """Tell how well pairs of memories are judged, by the rules and by the model that is set for contradictions."""
    from nacre.bench.judging import PairData, load, measure_judge
    from nacre.bench.judging_report import render_judge
    from nacre.spending.models import model_for
    from nacre.values.model_calls import Task

    model = None if only_rules else model_for(run.home, Task.CONTRADICTION, background=False)
    with progress.shown(run) as notify:
        result = measure_judge(load(data, "judge", PairData), model, notify or (lambda _: None))
    run.answer(dataclasses.asdict(result), lambda paper: render_judge(paper, result))


@command(
    "context",
    examples=[
        "nacre benchmark context",
        "nacre benchmark context --misses",
        "nacre benchmark context --data mine.toml",
    ],
)
@click.option("--data", type=_FILE, help="Other prompts of this shape.")
@click.option("--misses", is_flag=True, help="Also tell which prompts went wrong.")
@click.pass_obj
def context(run: Run, data: Path | None, misses: bool) -> None:
    """Tell whether an agent is given what a prompt needs, and nothing where it needs nothing.

    The prompts come after nacre's example sessions, which are ingested into a home of their own. Nothing is written to
    yours.
    """
    from nacre.bench.contexts import measure_context, read_prompts
    from nacre.bench.contexts_report import render_context

    prompts = read_prompts(data)
    with progress.shown(run) as notify:
        told = notify or (lambda _: None)
        figures = [
            measure_context(prompts, lambda _: _bundled_embedder(), alone=alone, notify=told) for alone in (False, True)
        ]
    answer = {"figures": [dataclasses.asdict(one) for one in figures]}
    run.answer(answer, lambda paper: render_context(paper, figures, misses=misses))


@command(
    "writers",
    examples=[
        "nacre benchmark writers",
        "nacre benchmark writers --clients 16 --as threads --seconds 5 --json",
    ],
)
@click.option("--clients", type=click.IntRange(1, 512), default=64, show_default=True, help="How many at once.")
@click.option(
    "--as",
    "kind",
    type=click.Choice(["processes", "threads", "both"]),
    default="both",
    show_default=True,
    help="Processes of their own, threads of one process, or half of each.",
)
@click.option("--seconds", type=click.FloatRange(1, 600), default=20.0, show_default=True, help="How long they work.")
@click.option("--home", type=_NEW_FOLDER, help="A new home on the disk that counts; else a temporary one.")
@click.pass_obj
def writers(run: Run, clients: int, kind: str, seconds: float, home: Path | None) -> None:
    """Tell how many memories many clients store a second, and whether all of them are there.

    Of what each client does 78 % are stores, 20 % recalls, 2 % updates of one memory that all share. Nothing is
    written to your home.
    """
    from nacre.bench.machine import describe
    from nacre.bench.report import render_writers
    from nacre.bench.writers import measure

    if home and home.exists():
        raise InvalidInput(f"{home} is there already", hint="name a folder that is not there yet")
    processes = {"processes": clients, "threads": 0, "both": clients // 2}[kind]
    with tempfile.TemporaryDirectory(prefix="nacre-writers-") as folder, progress.shown(run) as notify:
        result = measure(
            home or Path(folder) / "home", processes=processes, threads=clients - processes, seconds=seconds,
            notify=notify or (lambda _: None),
        )  # fmt: skip
    machine = describe()
    run.answer(
        {**dataclasses.asdict(result), "machine": dataclasses.asdict(machine)},
        lambda paper: render_writers(paper, result, machine),
    )
    run.exit_code = 1 if result.wrong else 0


@command("locks", examples=["nacre benchmark locks", "nacre benchmark locks --size 500 --json"])
@click.option(
    "--size", type=click.IntRange(10, 100_000), default=2000, show_default=True, help="How many sessions and memories."
)
@click.option("--home", type=_NEW_FOLDER, help="A new folder on the disk that counts; else a temporary one.")
@click.pass_obj
def locks(run: Run, size: int, home: Path | None) -> None:
    """Tell how long each long job keeps other writers waiting.

    Ingest, import, sync, forgetting and the others run one after the other on new homes. Nothing is written to your
    home.
    """
    from nacre.bench.locks import measure
    from nacre.bench.machine import describe
    from nacre.bench.report import render_locks

    if home and home.exists():
        raise InvalidInput(f"{home} is there already", hint="name a folder that is not there yet")
    with tempfile.TemporaryDirectory(prefix="nacre-locks-") as folder, progress.shown(run) as notify:
        jobs = measure(home or Path(folder) / "homes", size=size, notify=notify or (lambda _: None))
    machine = describe()
    run.answer(
        {"size": size, "jobs": [dataclasses.asdict(job) for job in jobs], "machine": dataclasses.asdict(machine)},
        lambda paper: render_locks(paper, size, jobs, machine),
    )


@command("hooks", examples=["nacre benchmark hooks", "nacre benchmark hooks --state 'daemon hung' --runs 50 --json"])
@click.option("--runs", type=click.IntRange(10, 10_000), default=200, show_default=True, help="Of each event in each.")
@click.option("--memories", type=click.IntRange(10, 100_000), default=2000, show_default=True, help="In the home.")
@click.option("--state", "states", type=TEXT, multiple=True, help="Only this state; may be given again.")
@click.pass_obj
def hooks(run: Run, runs: int, memories: int, states: tuple[str, ...]) -> None:
    """Tell what hooks cost their hosts, with the daemon and without, and where things go wrong.

    Whole processes run on a home of their own, in each state of daemon and home. Nothing is written to yours.
    """
    from nacre.bench.hooks import LIMIT_MS, START_LIMIT_MS, STATES, measure_hooks
    from nacre.bench.hooks_report import render_hooks
    from nacre.bench.machine import describe

    unknown = [state for state in states if state not in STATES]
    if unknown:
        raise InvalidInput(f"no state is called {unknown[0]!r}", hint=f"one of: {', '.join(STATES)}")
    with tempfile.TemporaryDirectory(prefix="nacre-hooks-") as folder, progress.shown(run) as notify:

        def tell(done: int, total: int, note: str) -> None:
            if notify:
                notify(Progress("hooks", done, total, note))

        figures = measure_hooks(Path(folder), runs=runs, memories=memories, only=states, notify=tell)
    machine = describe()
    answer = {
        "memories": memories, "limit_ms": LIMIT_MS, "start_limit_ms": START_LIMIT_MS,
        "figures": [dataclasses.asdict(one) for one in figures], "machine": dataclasses.asdict(machine),
    }  # fmt: skip
    run.answer(answer, lambda paper: render_hooks(paper, figures, machine))


benchmark.add_command(retrieval)
benchmark.add_command(extraction)
benchmark.add_command(context)
benchmark.add_command(silence)
benchmark.add_command(stale)
benchmark.add_command(claims)
benchmark.add_command(judge)
benchmark.add_command(redaction)
benchmark.add_command(speed)
benchmark.add_command(scale)
benchmark.add_command(writers)
benchmark.add_command(locks)
benchmark.add_command(hooks)


def _default_cache() -> Path:
    return Path(tempfile.gettempdir()) / "nacre-benchmark"


def _bundled_embedder() -> Embedder:
    from nacre.embed.onnx import load_minilm

    return load_minilm()
