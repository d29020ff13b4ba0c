"""Measure recall, false positives and speed of redaction, and compare it with an independent scanner."""

from __future__ import annotations

import json
import shutil
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.dataset import DATA
from benchmarks.redaction.building import Sample
from nacre.base.frozen import frozen
from nacre.redact.redactor import Redactor
from nacre.values.reports import OnProgress, Progress

SCANNER = "kingfisher"
PIECE_SIZES = (500, 20_000)
_REPETITIONS = 5
_SCAN_SECONDS = 600
_KEPT_SHARE = 0.6
_CLEAN_BYTES = 4_000_000


@frozen
class Family:
    """A family of texts, and how many were right: secrets removed or harmless text kept."""

    name: str
    samples: int
    right: int


@frozen
class Outcome:
    """The result for one scanner. ``missed`` and ``wrong`` are texts. Shares are from 0 to 1."""

    scanner: str
    positives: int
    found: int
    negatives: int
    touched: int
    families: tuple[Family, ...]
    missed: tuple[Sample, ...]
    wrong: tuple[Sample, ...]

    @property
    def recall(self) -> float:
        return self.found / max(1, self.positives)

    @property
    def false_positives(self) -> float:
        return self.touched / max(1, self.negatives)


@frozen
class Speed:
    """Speed of redacting text without secrets in pieces of ``piece`` characters, by CPU time.

    A megabyte is 1,000,000 bytes. With ``at_once``, all pieces are passed in one call, as by
    readers of transcripts.
    """

    piece: int
    at_once: bool
    megabytes_per_second: float


@frozen
class RedactionResult:
    """The result. ``other`` is ``None`` if the independent scanner is not installed."""

    own: Outcome
    other: Outcome | None
    speeds: tuple[Speed, ...]
    note: str


def measure(
    samples: Sequence[Sample], notify: OnProgress = lambda _: None, *, with_scanner: bool = True
) -> RedactionResult:
    """Measure redaction on a labelled set, and the independent scanner if it is on the path."""
    redactor = Redactor()
    own = _own_outcome(samples, redactor, notify)
    scanner = shutil.which(SCANNER) if with_scanner else None
    notify(Progress("scanning", 0, 1))
    other = _scanned(samples, scanner) if scanner else None
    note = (
        ""
        if scanner or not with_scanner
        else f"{SCANNER} is not installed: pip install 'nacre-memory[scan]'"
    )
    return RedactionResult(own, other, measure_speed(_clean_text(samples), redactor), note)


def measure_speed(text: str, redactor: Redactor) -> tuple[Speed, ...]:
    """Measure redaction of a text in pieces, and use the best of five runs."""
    speeds = []
    for size in PIECE_SIZES:
        pieces = [text[start : start + size] for start in range(0, len(text), size)]
        total = sum(len(piece.encode("utf-8", "replace")) for piece in pieces)
        for at_once in (False, True):
            best = min(_seconds(pieces, redactor, at_once=at_once) for _ in range(_REPETITIONS))
            speeds.append(Speed(size, at_once, total / best / 1e6))
    return tuple(speeds)


def is_gone(secret: str, text: str) -> bool:
    """Return True if a text contains neither the secret nor most of its beginning or end."""
    most = max(1, int(len(secret) * _KEPT_SHARE))
    return secret[:most] not in text and secret[-most:] not in text


def _own_outcome(samples: Sequence[Sample], redactor: Redactor, notify: OnProgress) -> Outcome:
    right = []
    for number, sample in enumerate(samples):
        cleaned = redactor.redact(sample.text)
        all_gone = all(is_gone(secret, cleaned.text) for secret in sample.secrets)
        right.append(all_gone if sample.secrets else not cleaned.counts)
        if number % 500 == 0:
            notify(Progress("redacting", number, len(samples)))
    return _outcome("nacre", samples, right)


def _outcome(scanner: str, samples: Sequence[Sample], right: Sequence[bool]) -> Outcome:
    tallies: dict[str, list[bool]] = defaultdict(list)
    for sample, is_right in zip(samples, right, strict=True):
        tallies[sample.family].append(is_right)
    pairs = list(zip(samples, right, strict=True))
    missed = tuple(sample for sample, is_right in pairs if sample.secrets and not is_right)
    wrong = tuple(sample for sample, is_right in pairs if not sample.secrets and not is_right)
    positives = sum(bool(sample.secrets) for sample in samples)
    return Outcome(
        scanner,
        positives,
        positives - len(missed),
        len(samples) - positives,
        len(wrong),
        tuple(Family(name, len(rights), sum(rights)) for name, rights in tallies.items()),
        missed,
        wrong,
    )


def _scanned(samples: Sequence[Sample], scanner: str) -> Outcome:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number, sample in enumerate(samples):
            (folder / f"{number}.txt").write_text(sample.text, encoding="utf-8", errors="replace")
        finished = subprocess.run(
            [
                scanner,
                "scan",
                "--no-validate",
                "--no-update-check",
                "--no-dedup",
                "--format",
                "json",
                "--quiet",
                "--git-history",
                "none",
                str(folder),
            ],
            capture_output=True,
            text=True,
            timeout=_SCAN_SECONDS,
            check=False,
            cwd=folder,
        )
    findings = _findings(finished.stdout)
    right = []
    for number, sample in enumerate(samples):
        snippets = findings.get(number, [])
        right.append(
            all(_is_covered(secret, snippets) for secret in sample.secrets)
            if sample.secrets
            else not snippets
        )
    return _outcome(SCANNER, samples, right)


def _findings(output: str) -> Mapping[int, list[str]]:
    snippets: dict[int, list[str]] = defaultdict(list)
    for item in json.loads(output or "{}").get("findings", []):
        details = item["finding"]
        snippets[int(Path(details["path"]).stem)].append(str(details["snippet"]))
    return snippets


def _is_covered(secret: str, snippets: Sequence[str]) -> bool:
    return any(secret in snippet or snippet in secret for snippet in snippets)


def _clean_text(samples: Sequence[Sample]) -> str:
    texts = [sample.text for sample in samples if not sample.secrets] or ["nothing secret here"]
    talk = (DATA / "redaction" / "talk.txt").read_text(encoding="utf-8").split("\n\n")
    pieces = [f"{talk[at % len(talk)]}\n\n{text}" for at, text in enumerate(texts)]
    joined = "\n\n".join(pieces)
    return joined * max(1, _CLEAN_BYTES // max(1, len(joined)))


def _seconds(pieces: Sequence[str], redactor: Redactor, *, at_once: bool) -> float:
    began = time.process_time()
    if at_once:
        redactor.clean_all(pieces)
    else:
        for piece in pieces:
            redactor.clean(piece)
    return time.process_time() - began
