"""Draws the first page of the results and the README's table of speeds from the results' pages.

Both are written in ``first_page.txt``, with references in place of figures, so that no figure is
copied by hand:

    <<section; row; column>>              a cell, by the first cells of its row and its column
    <<section#heading; row; column>>      the same after a line that begins so
    <<section; /pattern/>>                what the pattern's group matches in the section
    <<section; date>>                     the day of the run
    <<section; commit>>                   the commit that it ran on
    <<ratio: reference // reference>>     the second over the first, as in "2.3x"

A format may end a reference, after a last semicolon: ``.1f``, or ``%.1f`` for a share in per cent.
``--check`` writes nothing and fails where a page is not what would be drawn.

    python benchmarks/first_page.py
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
TEMPLATE = HERE / "first_page.txt"
MARKS = "<!-- speed -->\n", "<!-- /speed -->\n"
SECTION = re.compile(r"<!-- begin ([\w ]+) -->\n(.*?)<!-- end \1 -->\n", re.DOTALL)


class Missing(ValueError):
    """A reference that leads nowhere."""


def sections() -> dict[str, str]:
    """Return the text of every section of the results, by name."""
    pages = sorted(RESULTS.glob("*.md"))
    return {m[1]: m[2] for page in pages for m in SECTION.finditer(page.read_text("utf-8"))}


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def cell(text: str, row: str, column: str) -> str:
    """Return the one cell of the row and the column, in whichever table has both."""
    header: list[str] = []
    values = []
    for line in text.splitlines():
        if not line.startswith("|"):
            header = []
        elif not header:
            header = _cells(line)
        elif column in header:
            cells = _cells(line)
            if " / ".join(cells).startswith(row):
                values.append(cells[header.index(column)])
    if len(values) != 1:
        raise Missing(
            f"{len(values)} rows begin with {row!r} in tables with a column {column!r}, "
            "expected one: name more cells of the row, or a line before the table"
        )
    return values[0]


def look_up(reference: str, texts: dict[str, str]) -> str:
    """Return what a reference refers to."""
    section, *rest = (part.strip() for part in reference.split(";"))
    name, _, heading = section.partition("#")
    if name not in texts:
        raise Missing(f"there is no section {name!r}")
    text = texts[name]
    if heading:
        begun = re.search(rf"^(#+ )?{re.escape(heading)}.*\n", text, re.MULTILINE)
        if begun is None:
            raise Missing(f"section {name!r} has no line that begins with {heading!r}")
        # A heading is for all until the next one, another line for the table after it.
        end = r"^#+ " if begun[1] else r"(?<=\|)\n\n"
        text = re.split(end, text[begun.end() :], maxsplit=1, flags=re.MULTILINE)[0]
    if rest == ["date"]:
        return re.findall(r"20\d\d-\d\d-\d\d", f"{text}\n{texts[name]}")[0]
    if rest == ["commit"]:
        told = re.search(
            r"(?<![\w-])([0-9a-f]{8})\*?(?![\w-])", re.sub(r"`.*?`", "", text.split("\n")[0])
        )
        if told is None:
            raise Missing(f"the first line of section {section!r} has no commit")
        return told[1]
    if rest[0].startswith("/"):
        match = re.search(rest[0].strip("/"), text, re.DOTALL)
        if match is None:
            raise Missing(f"{rest[0]} is not in section {section!r}")
        value, spec = match[1], rest[1:]
    else:
        value, spec = cell(text, rest[0], rest[1]), rest[2:]
    if not spec:
        return value
    scale = 100 if spec[0].startswith("%") else 1
    return format(scale * number(value), spec[0].lstrip("%"))


def number(text: str) -> float:
    """Return the number that a cell begins with."""
    match = re.match(r"[-+]?[\d.,]+(e[-+]?\d+)?", text)
    if match is None:
        raise Missing(f"{text!r} is no number")
    return float(match[0].replace(",", ""))


def drawn(text: str, texts: dict[str, str]) -> str:
    """Return a text with every reference replaced by its figure."""

    def one(match: re.Match[str]) -> str:
        reference = match[1].strip()
        try:
            if not reference.startswith("ratio:"):
                return look_up(reference, texts)
            ours, theirs = (
                number(look_up(one, texts))
                for one in reference.removeprefix("ratio:").split(" // ")
            )
        except (Missing, IndexError) as error:
            raise Missing(f"<<{reference}>>: {error}") from None
        ratio = theirs / ours
        return f"{ratio:.0f}x" if ratio >= 9.95 else f"{ratio:.1f}x"

    return re.sub(r"<<(.*?)>>", one, text, flags=re.DOTALL)


def pages() -> dict[Path, str]:
    """Return the text of both pages, as they would be drawn now."""
    speed, _, first = TEMPLATE.read_text("utf-8").partition("=====\n")
    texts = sections()
    readme = HERE.parent / "README.md"
    before, _, rest = readme.read_text("utf-8").partition(MARKS[0])
    after = rest.partition(MARKS[1])[2]
    table = drawn(speed, texts)
    return {
        readme: f"{before}{MARKS[0]}{table}{MARKS[1]}{after}",
        RESULTS / "README.md": drawn(first, texts),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if one is stale")
    args = parser.parse_args()
    stale = [p for p, text in pages().items() if not p.exists() or p.read_text("utf-8") != text]
    for path in stale:
        print(path.relative_to(HERE.parent).as_posix())
        if not args.check:
            path.write_text(pages()[path], encoding="utf-8")
    return 1 if stale and args.check else 0


if __name__ == "__main__":
    sys.exit(main())
