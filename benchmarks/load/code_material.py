"""Generate a reproducible repository in four languages, with any number of files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

_METHODS = 6
_BODY = 8


def write_repository(root: Path, files: int, symbols: int) -> None:
    """Write ``files`` files with about ``symbols`` symbols each. Each file calls and imports its neighbours."""
    languages: tuple[tuple[str, Callable[[int, int, int], str]], ...] = (
        ("py", _python),
        ("ts", _typescript),
        ("go", _go),
        ("java", _java),
    )
    root.mkdir(parents=True, exist_ok=True)
    (root / "go.mod").write_text("module example.org/made\n", encoding="utf-8")
    for number in range(files):
        suffix, write = languages[number % len(languages)]
        place = root / suffix / f"part{number // 400:03}"
        place.mkdir(parents=True, exist_ok=True)
        (place / f"file{number:05}.{suffix}").write_text(
            write(number, files, symbols), encoding="utf-8"
        )


def _neighbour(number: int, files: int) -> int:
    return number - 4 if number % 400 >= 4 else min(number + 4, files - 1)


def _python(number: int, files: int, symbols: int) -> str:
    other = _neighbour(number, files)
    lines = [
        f"from py.part{other // 400:03}.file{other:05} import Kind{other}x0, work{other}x0",
        "",
    ]
    for kind in range(symbols // (_METHODS + 2)):
        base = f"Kind{other}x0" if kind == 0 and number % 3 == 0 else "object"
        lines.append(f"class Kind{number}x{kind}({base}):")
        for method in range(_METHODS):
            lines.append(f"    def step{number}x{kind}x{method}(self, value: Kind{other}x0):")
            lines += [
                f"        total = value.step{other}x0x0({line}) + len('text {line}')"
                for line in range(_BODY)
            ]
            lines.append(
                f"        return self.step{number}x{kind}x{(method + 1) % _METHODS}(total)"
            )
        lines += [
            f"def work{number}x{kind}(value):",
            f"    return work{other}x0(Kind{number}x{kind}())",
            "",
        ]
    return "\n".join(lines)


def _typescript(number: int, files: int, symbols: int) -> str:
    other = _neighbour(number, files)
    lines = [
        f'import {{ Kind{other}x0, work{other}x0 }} from "../part{other // 400:03}/file{other:05}";'
    ]
    for kind in range(symbols // (_METHODS + 2)):
        lines.append(f"export class Kind{number}x{kind} {{")
        for method in range(_METHODS):
            lines.append(f"  step{number}x{kind}x{method}(value: Kind{other}x0): number {{")
            lines += [
                f"    const t{line} = value.step{other}x0x0({line}) + `text`.length;"
                for line in range(_BODY)
            ]
            lines.append(
                f"    return this.step{number}x{kind}x{(method + 1) % _METHODS}(t0);\n  }}"
            )
        lines.append(
            f"}}\nexport function work{number}x{kind}(value: number) {{ return work{other}x0(value); }}"
        )
    return "\n".join(lines)


def _go(number: int, files: int, symbols: int) -> str:
    other = _neighbour(number, files)
    lines = [f"package part{number // 400:03}", 'import "fmt"']
    for kind in range(symbols // (_METHODS + 2)):
        lines.append(f"type Kind{number}x{kind} struct {{ next *Kind{other}x0 }}")
        for method in range(_METHODS):
            lines.append(
                f"func (k *Kind{number}x{kind}) Step{number}x{kind}x{method}(value int) int {{"
            )
            lines += [
                f"\tk.next.Step{other}x0x0({line}); fmt.Println({line})" for line in range(_BODY)
            ]
            lines.append(f"\treturn k.Step{number}x{kind}x{(method + 1) % _METHODS}(value)\n}}")
        lines.append(f"func Work{number}x{kind}(value int) int {{ return Work{other}x0(value) }}")
    return "\n".join(lines)


def _java(number: int, files: int, symbols: int) -> str:
    other = _neighbour(number, files)
    lines = [
        f"package made.part{number // 400:03};",
        f"import made.part{other // 400:03}.Kind{other}x0;",
    ]
    for kind in range(symbols // (_METHODS + 2)):
        lines.append(f"class Kind{number}x{kind} {{")
        for method in range(_METHODS):
            lines.append(f"  int step{number}x{kind}x{method}(Kind{other}x0 value) {{")
            lines += [
                f"    value.step{other}x0x0({line}); System.out.println({line});"
                for line in range(_BODY)
            ]
            lines.append(f"    return step{number}x{kind}x{(method + 1) % _METHODS}(value);\n  }}")
        lines.append(
            f"  static int work{number}x{kind}() {{ return new Kind{number}x{kind}().hashCode(); }}\n}}"
        )
    return "\n".join(lines)
