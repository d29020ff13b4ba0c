"""Build the documentation site: README.md, docs/ and linked files, and a reference generated from the code.

    python scripts/build_docs.py                       # into build/site; a broken link or anchor fails
    python scripts/build_docs.py --source FOLDER TO    # another folder with README.md and docs/README.md

The sections and links of docs/README.md are the navigation. Pages in a folder named like a page, or in the folder of a
README.md page, are listed below that page. The built site loads nothing from other hosts.
"""

from __future__ import annotations

import argparse
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reference_docs import reference_pages

PROJECT = Path(__file__).parents[1]
MAP = Path("docs/README.md")
ENTRANCE = Path("README.md")
REFERENCE = "Reference"

LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)\s]*)?\)")
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)

OPTIONS = {
    "project": "nacre",
    "html_title": "nacre",
    "html_theme": "furo",
    "html_show_copyright": False,
    "html_show_sphinx": False,
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_use_index": False,
    "extensions": ["myst_parser"],
    "myst_heading_anchors": 6,
    "root_doc": "index",
    "html_css_files": ["site.css"],
    "html_static_path": [str(PROJECT / "scripts" / "site.css")],
    "html_theme_options": {
        "light_css_variables": {"color-brand-primary": "#6b4a99", "color-brand-content": "#6b4a99"},
        "dark_css_variables": {"color-brand-primary": "#c3a6ee", "color-brand-content": "#c3a6ee"},
    },
    "smartquotes": False,  # they would replace the two dashes before options
    # Pages outside the navigation that are only linked.
    "suppress_warnings": ["toc.not_included"],
}
"""Options for Sphinx. Pages are CommonMark with anchors like GitHub's."""


@dataclass(frozen=True)
class Section:
    """A heading in the navigation, with the titles and paths of its pages."""

    title: str
    pages: tuple[tuple[str, Path], ...]


def sections(source: Path) -> Iterator[Section]:
    """Yield the sections of docs/README.md."""
    for part in re.split(r"^## ", (source / MAP).read_text(encoding="utf-8"), flags=re.MULTILINE)[
        1:
    ]:
        title, _, body = part.partition("\n")
        named = re.findall(r"^- \[([^\]]+)\]\(([^)#]+\.md)\)", body, re.MULTILINE)
        yield Section(
            title, tuple((name, inside(source, source / "docs" / path)) for name, path in named)
        )


def inside(source: Path, path: Path) -> Path:
    """Return a path relative to the source folder."""
    return path.resolve().relative_to(source.resolve())


def stage(source: Path, target: Path, made: Mapping[str, str]) -> None:
    """Copy pages and linked files into a folder, with the generated pages and the navigation."""
    waiting = [
        ENTRANCE,
        *(inside(source, path) for path in sorted((source / "docs").rglob("*.md"))),
    ]
    seen = set(waiting)
    while waiting:
        name = waiting.pop()
        text = (source / name).read_bytes()
        if name.suffix == ".md":
            page = text.decode("utf-8")
            further = linked(source, name, page) - seen
            seen |= further
            waiting += further
            text = (page + navigation(source, name, made)).encode("utf-8")
        write(target / ("index.md" if name == ENTRANCE else name), text)
    for place, page in made.items():
        write(target / place, page.encode("utf-8"))


def linked(source: Path, name: Path, page: str) -> set[Path]:
    """Return the files that a page links. Sphinx reports folders and missing files."""
    targets = [
        (source / name).parent / target
        for target in LINK.findall(CODE.sub("", page))
        if ":" not in target
    ]
    return {
        inside(source, target)
        for target in targets
        if target.is_file() and target.resolve().is_relative_to(source)
    }


def navigation(source: Path, name: Path, made: Mapping[str, str]) -> str:
    """Return the navigation below a page, or all of it for the front page."""
    if name == ENTRANCE:
        trees = []
        for section in sections(source):
            entries = [
                f"{title} <{path.with_suffix('').as_posix()}>" for title, path in section.pages
            ]
            if section.title == REFERENCE:
                entries = [
                    place.removesuffix(".md") for place in made if place.count("/") == 1
                ] + entries
            trees.append(tree([f":caption: {section.title}", "", *entries]))
        return "".join(trees)
    folder = name.parent if name.name == "README.md" else name.with_suffix("")
    if name == MAP or not any((source / folder).glob("*.md")) or folder == Path("benchmarks"):
        return ""
    children = sorted(
        path.stem for path in (source / folder).glob("*.md") if path.name != "README.md"
    )
    return tree(["", *(f"/{folder.as_posix()}/{child}" for child in children)])


def tree(lines: list[str]) -> str:
    """Return a table of contents that appears only in the sidebar."""
    return "\n".join(["", "```{toctree}", ":hidden:", *lines, "```", ""])


def write(path: Path, content: bytes) -> None:
    """Write a file and create its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def build(source: Path, target: Path) -> int:
    """Build the site. Return exit code 1 if there is any problem."""
    from sphinx.application import Sphinx

    work = target.with_name(f"{target.name}-source")
    for folder in (work, target):
        shutil.rmtree(folder, ignore_errors=True)
    made = reference_pages() if source == PROJECT else {}
    stage(source, work, made)
    app = Sphinx(
        work,
        None,
        target,
        target.with_name(f"{target.name}-cache"),
        "html",
        OPTIONS,
        freshenv=True,
        status=None,
        warningiserror=True,
        exception_on_warning=False,
    )
    app.build()
    return app.statuscode


def main() -> None:
    """Build the site for the given arguments."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--source", type=Path, default=PROJECT)
    parser.add_argument("target", type=Path, nargs="?", default=PROJECT / "build" / "site")
    options = parser.parse_args()
    code = build(options.source.resolve(), options.target.resolve())
    print(
        f"{options.target}/index.html" if not code else "the site has errors, see above",
        file=sys.stderr,
    )
    raise SystemExit(code)


if __name__ == "__main__":
    main()
