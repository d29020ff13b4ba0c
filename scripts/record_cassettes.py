#!/usr/bin/env python
"""Run the scenarios in tests/llm with a model, and save its answers in tests/llm/cassettes.

Run by ``make cassettes MODEL=provider:model`` with your keys and configuration. Prompts with valid
cassettes are not sent again, except with ``--again``. If a scenario passes, its cassettes are
replaced and outdated ones deleted. If it fails, the answers stay in build/cassettes for inspection,
and the script exits with 1. ``--only NAME`` runs one scenario and can be repeated.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import traceback
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from nacre.errors import NacreError  # noqa: E402
from nacre.llm.providers import (  # noqa: E402
    RecordingModel,
    ReplayingModel,
    file_name,
    open_model,
)
from nacre.protocols import LanguageModel  # noqa: E402
from nacre.redact.redactor import Redactor  # noqa: E402
from nacre.settings import load_settings  # noqa: E402
from nacre.values.models import (  # noqa: E402
    Completion,
    Prompt,
)
from tests.llm.scenarios import SCENARIOS, Scenario  # noqa: E402

CASSETTES = ROOT / "tests/llm/cassettes"
FRESH = ROOT / "build/cassettes"


class Recorder:
    """A LanguageModel that saves answers in ``fresh``. Known answers are copied from ``known``."""

    def __init__(self, model: LanguageModel, known: Path, fresh: Path) -> None:
        self.name = model.name
        self.capabilities = model.capabilities
        self.asked = 0
        self._known = known
        self._fresh = fresh
        self._recording = RecordingModel(model, fresh, Redactor().clean)

    def complete(self, prompt: Prompt) -> Completion:
        """Answer a prompt. Raises the model's errors."""
        path = self._known / file_name(prompt)
        if path.exists():
            self._fresh.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, self._fresh)
            return ReplayingModel(self._known).complete(prompt)
        self.asked += 1
        return self._recording.complete(prompt)

    def close(self) -> None:
        """Do nothing; the caller closes the model."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="provider:model")
    parser.add_argument(
        "--only", action="append", choices=SCENARIOS, metavar="NAME", help="only this scenario"
    )
    parser.add_argument("--again", action="store_true", help="send every prompt again")
    options = parser.parse_args()
    try:
        model = open_model(load_settings(), options.model)
    except NacreError as error:
        parser.error(f"{error.message} ({error.hint})")
    if not options.only and CASSETTES.exists():
        for folder in CASSETTES.iterdir():
            if folder.is_dir() and folder.name not in SCENARIOS:
                shutil.rmtree(folder)
    try:
        good = [
            record(SCENARIOS[name], model, again=options.again)
            for name in options.only or SCENARIOS
        ]
    finally:
        model.close()
    print(f"{sum(good)} of {len(good)} scenarios passed")
    return 0 if all(good) else 1


def record(scenario: Scenario, model: LanguageModel, *, again: bool) -> bool:
    """Run a scenario. Return True if its cassettes are up to date."""
    kept, fresh = CASSETTES / scenario.name, FRESH / scenario.name
    shutil.rmtree(fresh, ignore_errors=True)
    recorder = Recorder(model, FRESH / "none" if again else kept, fresh)
    try:
        with tempfile.TemporaryDirectory() as folder:
            scenario.run(recorder, Path(folder))
    except NacreError as error:
        print(f"✗ {scenario.name}: {error.message}" + (f" ({error.hint})" if error.hint else ""))
        return False
    except (AssertionError, LookupError, ValueError) as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        print(
            f"✗ {scenario.name}: line {where.lineno} of {Path(where.filename).name} failed: {where.line}"
        )
        print(f"  the answers are in {fresh.relative_to(ROOT)}")
        return False
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(fresh, kept)
    shutil.rmtree(fresh)
    print(f"✓ {scenario.name} ({recorder.asked} prompts sent)", flush=True)
    return True


if __name__ == "__main__":
    raise SystemExit(main())
