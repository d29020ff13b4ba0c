"""Record a terminal session with nacre as docs/terminal.svg. With --show, only print the text.

    python scripts/record_terminal.py          # or with the name of another file

The commands run one after another in a temporary home with the example sessions. To make the
picture reproducible, the clock starts at NOW and stops while a command runs, ids come from a seed,
and durations are TOOK. The picture is plain SVG, animated by CSS without scripts or fonts. It is
static if the viewer prefers reduced motion.
"""

from __future__ import annotations

import argparse
import os
import pty
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from pathlib import Path

from nacre.cli.command import cells

PICTURE = Path(__file__).parents[1] / "docs" / "terminal.svg"

NOW = datetime(2026, 11, 20, 9, tzinfo=UTC)
TOOK = "0.1 s"
COMMANDS = (
    "nacre quickstart",
    'nacre recall "when can I not reach the gateways?" --turns 0 --limit 1',
    'nacre recall "do we use kafka?" --turns 0',
    'nacre store "We moved from Pagefind to Tantivy" --project choirbook',
    'nacre recall "which search does choirbook use?" --turns 0 --limit 1',
    "nacre undo --yes",
)

LAUNCH = """
import random, sys
from datetime import datetime
from nacre.base import environment as ancestry, ids
now, seed = datetime.fromisoformat(sys.argv.pop(1)), sys.argv.pop(1)
ids.utc_now = lambda: now
ids.uuid7_source.__defaults__ = (ids.utc_now, random.Random(seed).randbytes)
ancestry.own_agent = lambda: None  # record as the owner's terminal
from nacre.__main__ import main
main()
"""

COLUMNS, ROWS = 92, 26
FONT, WIDTH, HEIGHT, MARGIN, BAR = 14, 8.4, 20, 18, 34
TYPING, PAUSE, READING, END = 0.03, 0.5, 0.16, 5.0
"""Seconds for typing a character, after a command, for reading a line, and before the animation restarts."""

STYLE = """
text {
  font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace;
  fill: #d7dce4; white-space: pre;
}
.b { font-weight: 700 } .i { font-style: italic } .d { opacity: .62 }
.c31 { fill: #f28b82 } .c32 { fill: #8fd19e } .c33 { fill: #e6c07b } .c34 { fill: #82b1ff } .c35 { fill: #caa6ff }
.c36 { fill: #7fd4d9 } .p { fill: #8fd19e }
@media (prefers-reduced-motion: reduce) { * { animation: none !important } }
"""

SGR = re.compile(r"\x1b\[([\d;]*)m")
CONTROL = re.compile(r"\x1b\[[\d;?]*[A-Za-ln-z]|\x1b\][^\x07]*\x07|\r")


@dataclass(frozen=True)
class Step:
    """A command and its output lines with colours."""

    command: str
    lines: tuple[str, ...]


def record() -> Iterator[Step]:
    """Run the commands and yield their steps."""
    with tempfile.TemporaryDirectory() as home:
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": home,
            "NACRE_HOME": f"{home}/.nacre",
            "TERM": "xterm-256color",
            "COLUMNS": str(COLUMNS),
            "LINES": str(ROWS),
            "LANG": "C.UTF-8",
            "TZ": "UTC",
            "NACRE_DAEMON_ENABLED": "false",
            "NACRE_GIT_BACKGROUND": "false",
            "NACRE_INGEST_WORKERS": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        }
        for number, command in enumerate(COMMANDS):
            now = NOW + timedelta(minutes=number)
            arguments = [
                sys.executable,
                "-c",
                LAUNCH,
                now.isoformat(),
                str(number),
                *shlex.split(command)[1:],
            ]
            shown = run(arguments, environ, home).replace(home, "/home/ada")
            shown = re.sub(r"(?<= in )\d+(\.\d+)? s\b", TOOK, CONTROL.sub("", shown))
            yield Step(command, tuple(shown.rstrip().split("\n")))


def run(arguments: Sequence[str], environ: dict[str, str], folder: str) -> str:
    """Return the output of a program on a terminal, without progress and errors."""
    mine, theirs = pty.openpty()
    with subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=folder,
    ) as program:
        os.close(theirs)
        shown = bytearray()
        while True:
            try:
                read = os.read(mine, 4096)
            except OSError:  # the end of output on Linux
                break
            if not read:
                break
            shown += read
        os.close(mine)
        complaint = program.stderr.read().decode() if program.stderr else ""
    if program.returncode:
        raise SystemExit(f"{shlex.join(arguments[5:])}: {complaint}")
    return shown.decode()


def picture(steps: Sequence[Step]) -> str:
    """Return the SVG: rows that appear one after another in a scrolling window.

    The first answer is visible from the start, for viewers without animation.
    """
    film = Film()
    for step in steps:
        film.type(step.command)
        for page in pages(step.lines):
            film.show(page)
    width, height = COLUMNS * WIDTH + 2 * MARGIN, ROWS * HEIGHT + BAR + MARGIN
    rules, rows = film.rules(), "\n".join(film.rows)
    dots = "".join(f'<circle cx="{20 + 18 * at}" cy="17" r="5.5"/>' for at in range(3))
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" role="img">
<title>nacre in a terminal</title>
<style>{STYLE}{rules}</style>
<rect x=".5" y=".5" width="{width - 1:.0f}" height="{height - 1}" rx="10" fill="#1b1f27" stroke="#454d5a"/>
<g fill="#454d5a">{dots}</g>
<svg x="{MARGIN}" y="{BAR}" width="{COLUMNS * WIDTH:.0f}" height="{ROWS * HEIGHT}"><g class="window">
{rows}
</g></svg>
</svg>
"""


def pages(lines: Sequence[str]) -> Iterator[Sequence[str]]:
    """Yield parts of a long answer. Each ends before a heading if possible."""
    rest = list(lines)
    while len(rest) > ROWS - 4:
        ends = [at for at in range(ROWS // 3, ROWS - 4) if not rest[at].strip()]
        cut = ends[-1] + 1 if ends else ROWS - 4
        yield rest[:cut]
        rest = rest[cut:]
    yield rest


class Film:
    """The animation: rows with the classes that show them, and the window's position."""

    def __init__(self) -> None:
        self.rows: list[str] = []
        self._now = 0.0
        self._row = 0
        self._shown: list[float] = []
        self._typed: list[tuple[float, float, int]] = []
        self._scrolled: list[tuple[float, int]] = []

    def type(self, command: str) -> None:
        """Add a prompt and a typed command."""
        self._row += bool(self._row)  # an empty line
        begun, kind = self._appear(1), "b"
        if self._now:
            kind = f"b t{len(self._typed)}"
            end = self._now + len(command) * TYPING
            self._typed.append((self._now, end, len(command)))
            self._now = end + PAUSE
        self.rows.append(
            f'<g class="{begun}">{self._text(0, "$", "p")}{self._text(2, command, kind)}</g>'
        )
        self._row += 1

    def show(self, lines: Sequence[str]) -> None:
        """Add lines that appear together, and time to read them."""
        begun = self._appear(len(lines))
        shown = []
        for line in lines:
            shown += [self._text(column, words, kind) for column, words, kind in spans(line)]
            self._row += 1
        self.rows.append(f'<g class="{begun}">{"".join(shown)}</g>')
        self._now += max(1.2, READING * len([line for line in lines if line.strip()]))

    def rules(self) -> str:
        whole = self._now + END
        rules = ["", f"[class^=a], .window, [class*=t] {{ animation: {whole:.2f}s infinite }}"]
        for number, moment in enumerate(self._shown):
            rules.append(
                f".a{number} {{ animation-name: a{number}; animation-timing-function: step-end }}"
            )
            rules.append(
                f"@keyframes a{number} {{ 0% {{ opacity: 0 }} {moment / whole:.3%} {{ opacity: 1 }} }}"
            )
        for number, (begun, end, characters) in enumerate(self._typed):
            hidden, seen = "clip-path: inset(0 100% 0 0)", "clip-path: inset(0 0 0 0)"
            rules.append(f".t{number} {{ animation-name: t{number} }}")
            rules.append(
                f"@keyframes t{number} {{ 0% {{ {hidden} }} {begun / whole:.3%} {{ {hidden};"
                f" animation-timing-function: steps({characters}) }} {end / whole:.3%}, 100% {{ {seen} }} }}"
            )
        places = "".join(
            f" {moment / whole:.3%} {{ transform: translateY({-row * HEIGHT}px) }}"
            for moment, row in self._scrolled
        )
        rules.append(".window { animation-name: window; animation-timing-function: step-end }")
        rules.append(f"@keyframes window {{ 0% {{ transform: translateY(0) }}{places} }}")
        return "\n".join(rules) + "\n"

    def _appear(self, rows: int) -> str:
        """Return the class for rows that become visible now. Scroll if necessary."""
        over = self._row + rows - ROWS
        if over > 0:
            self._scrolled.append((self._now, over))
        if not self._now:
            return "first"
        self._shown.append(self._now)
        return f"a{len(self._shown) - 1}"

    def _text(self, column: int, words: str, kind: str) -> str:
        x, y, style = (
            column * WIDTH,
            self._row * HEIGHT + FONT + 1,
            f' class="{kind}"' if kind else "",
        )
        fit = (
            f' textLength="{len(words) * WIDTH:.1f}"' if words.isascii() and len(words) > 1 else ""
        )
        return f'<text x="{x:.1f}" y="{y}"{fit}{style}>{escape(words, quote=False)}</text>'


def spans(line: str) -> Iterator[tuple[int, str, str]]:
    """Yield the column, text and class of each part of a line that has the same style."""
    column, kind, names = 0, "", {"1": "b", "2": "d", "3": "i"}
    for part in re.split(f"({SGR.pattern.replace('(', '(?:')})", line):
        match = SGR.fullmatch(part)
        if match:
            codes = [code for code in match[1].split(";") if code not in ("", "0")]
            kind = " ".join(names.get(code, f"c{code}") for code in codes)
            continue
        for words in re.finditer(r"\S+(?: \S+)*", part):
            yield column + cells(part[: words.start()]), words[0], kind
        column += cells(part)


def main() -> None:
    """Record and write the picture."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("target", type=Path, nargs="?", default=PICTURE)
    parser.add_argument("--show", action="store_true", help="print the text and write nothing")
    options = parser.parse_args()
    steps = list(record())
    if options.show:
        for step in steps:
            print(f"$ {step.command}", *(SGR.sub("", line) for line in step.lines), sep="\n")
    else:
        options.target.write_text(picture(steps), encoding="utf-8")
        print(options.target)


if __name__ == "__main__":
    main()
