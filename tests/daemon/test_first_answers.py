"""Threads that read values of one type for the first time at once: what msgspec keeps of a dataclass is made once."""

from __future__ import annotations

import subprocess
import sys

from tests.cli.conftest import environment

_CROWD = """
import sys, threading
sys.setswitchinterval(1e-6)
from nacre.platform import json_values
from nacre.values.recall import RecallQuery, RecallResult

together = threading.Barrier(8)

def read():
    together.wait()
    for _ in range(2):
        json_values.decode(b'{"query": "who?"}', RecallResult)
        json_values.from_plain({"text": "who?"}, RecallQuery)

threads = [threading.Thread(target=read) for _ in range(8)]
for one in threads:
    one.start()
for one in threads:
    one.join()
"""


def test_the_first_answers_of_many_threads_end_no_process() -> None:
    for _ in range(5):
        done = subprocess.run([sys.executable, "-c", _CROWD], env=environment(), capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
