"""Rules that pick faults in .pyx files: sign, off by one, swapped arguments.

The choice depends on the text of the file alone.  Lines that only say how much memory there is
are left out: a fault there is found by the sanitizer's build (``.ci/checked address``), if at all.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Lines per further fault in one file.
LINES = 250
MEMORY = re.compile(
    r"alloc|sizeof|bytes|capacity|np\.(empty|zeros|full|ones)|aligned_zeros|align\(|isinstance|repeat|enumerate|raise|f\"|memset|memcpy"
)
# Parts of one piece of memory, each behind the other.
LAID_OUT = re.compile(r"\s*(\w+)\.\w+ = (<[\w*]+>)?\(?\1\.\w+ [+-] .*")
HEAD = re.compile(r"\s*(cdef|def|cpdef|class|import|from|cimport|@|ctypedef|with|return 0)\b.*")
WORD = r"[A-Za-z_][\w.]*(?:\[[^\[\]]*\])?"


def signs(line: str) -> Iterator[str]:
    """Yield the line with another sign between two terms, or in front of what is added up."""
    for match in re.finditer(r"(?<=[\w)\]]) ([+-]) (?=[\w(&])", line):
        # Within brackets it would read anywhere, which may or may not end the process.
        inside = line[: match.start()].count("[") > line[: match.start()].count("]")
        if not inside and not re.match(r"1\b(?!\.)", line[match.end() :]):
            yield _with(line, match, 1, "-" if match[1] == "+" else "+")
    for match in re.finditer(r" ([+-])= (?!1\b)", line):
        yield _with(line, match, 1, "-" if match[1] == "+" else "+")


def off_by_one(line: str) -> Iterator[str]:
    """Yield the line as a loop that leaves out its first or its last."""
    match = re.search(r"in range\(([^,()]+)\):", line)
    if match:
        yield _with(line, match, 1, f"1, {match[1]}")
        yield _with(line, match, 1, f"{match[1]} - 1")
    match = re.search(r"in range\(([^,()]+), ([^,()]+)\):", line)
    if match:
        yield _with(line, match, 1, f"{match[1]} + 1")
        yield _with(line, match, 2, f"{match[2]} - 1")


def swaps(line: str) -> Iterator[str]:
    """Yield the line with two arguments, or the sides of a comparison, swapped."""
    for match in re.finditer(rf"[(,] ?({WORD}), ({WORD})(?=[,)])", line):
        pair = {match[1], match[2]}
        if (
            len(pair) == 2
            and re.search(r"\w\([^()]*$", line[: match.end()])
            and not (pair & UNLIKE or re.search(r"\b(range|min|max)\($", line[: match.start() + 1]))
        ):
            yield _with(_with(line, match, 2, match[1]), match, 1, match[2])
    match = re.search(r"\b(?:if|while) .*?[\w\])] ([<>]) [\w(]", line)
    if match:
        yield _with(line, match, 1, "<" if match[1] == ">" else ">")


# Arguments whose neighbours are of other types: swapped, the file would not compile.
UNLIKE = {
    "i",
    "theta",
    "work",
    "self",
    "model",
    "values",
    "label",
    "kernels",
    "view",
    "self.kernels",
}


RULES: dict[str, Callable[[str], Iterator[str]]] = {
    "sign": signs,
    "off by one": off_by_one,
    "swapped": swaps,
}


def _with(line: str, match: re.Match[str], group: int, text: str) -> str:
    return line[: match.start(group)] + text + line[match.end(group) :]


def code_lines(text: str) -> Iterator[int]:
    """Yield the numbers of lines inside functions that hold code, and no sizes of memory."""
    quoted, function, opening = False, "", 0
    for number, line in enumerate(text.split("\n")):
        marks = line.count('"""')
        if quoted or marks:
            quoted ^= marks % 2 == 1
            continue
        bare = line.strip()
        start = re.match(r"( *)(?:cdef|def|cpdef)\b.*?(\w+)\(", line)
        if start and not re.search(r"\) *$|= ", line) or (start and bare.endswith((":", ","))):
            function, opening = start[2], len(start[1])
        if line and not line.startswith(" "):
            function = "" if not start else function
        if not bare or bare.startswith("#") or not function or HEAD.fullmatch(line):
            continue
        if (
            LAID_OUT.fullmatch(line)
            or MEMORY.search(line)
            or MEMORY.search(function)
            or re.search(r"size|_in$|room", function)
        ):
            continue
        if len(line) - len(line.lstrip()) > opening:
            yield number


def has_loop(text: str) -> bool:
    """Tell whether a file has a loop of its own."""
    return bool(re.search(r"^\s+(?:for|while)\b.*:", text, re.MULTILINE))


def candidates(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield kind, old text and new text of every fault that the rules can make, shuffled."""
    lines = text.split("\n")
    made = []
    for number in code_lines(text):
        line = lines[number]
        code = line.split("  # ")[0]
        for kind, rule in RULES.items():
            for changed in rule(code):
                old = line
                first = number
                # Lines before it, until there is but one such place.
                while text.count(old) > 1 and first > max(0, number - 8):
                    first -= 1
                    old = "\n".join(lines[first : number + 1])
                if text.count(old) == 1:
                    new = old[: len(old) - len(line)] + changed + line[len(code) :]
                    order = hashlib.sha256(f"{kind}{old}{new}".encode()).hexdigest()
                    made.append((order, kind, old, new))
    for _, kind, old, new in sorted(made):
        yield kind, old, new


def compiled_files(root: Path) -> dict[str, str]:
    """Return the texts of the .pyx files that have a loop, by name."""
    paths = [p for folder in ("structsolve", "plugins") for p in (root / folder).rglob("*.pyx")]
    texts = {p.relative_to(root).as_posix(): p.read_text() for p in sorted(paths)}
    return {name: text for name, text in texts.items() if has_loop(text)}


def renewed(
    old: list[Any], root: Path, make: Callable[..., Any], compiles: Callable[[Any], bool]
) -> list[Any]:
    """Keep the faults whose text is there, follow files that moved, fill up with new ones.

    Parameters
    ----------
    old : list of Fault
    root : Path
        The checkout.
    make : callable
        Makes a fault of id, file, kind, old and new text.
    compiles : callable
        Tells whether the file compiles with a fault.
    """
    texts, kept = compiled_files(root), []
    everywhere = dict(texts)
    for fault in old:
        if fault.file.endswith(".py") and (root / fault.file).exists():
            everywhere[fault.file] = (root / fault.file).read_text()
    for fault in old:
        homes = [fault.file] if everywhere.get(fault.file, "").count(fault.old) == 1 else []
        homes = homes or [name for name, text in everywhere.items() if text.count(fault.old) == 1]
        if len(homes) == 1:
            number = fault.id.split(":")[1]
            if fault.file != homes[0]:
                number = str(sum(other.file == homes[0] for other in kept) + 1)
            fault.file = homes[0]
            fault.id = f"{homes[0].rsplit('.', 1)[0]}:{number}"
            kept.append(fault)
        else:
            print("gone:", fault.id)
    for name, text in texts.items():
        mine = [fault for fault in kept if fault.file == name]
        wanted = 1 + text.count("\n") // LINES
        numbers = {int(fault.id.split(":")[1]) for fault in mine}
        kinds = {fault.kind for fault in mine}
        made = [c for c in candidates(text) if all(c[1] != fault.old for fault in mine)]
        while len(mine) < wanted and made:
            # Kinds in turn, as far as a file has them.
            fresh = [c for c in made if c[0] not in kinds] or made
            kind, before, after = fresh[0]
            made = [c for c in made if c[1] != before]
            number = next(k for k in range(1, 1000) if k not in numbers)
            fault = make(f"{name.removesuffix('.pyx')}:{number}", name, kind, before, after)
            if not compiles(fault):
                continue
            kinds = kinds | {kind} if len(kinds) < len(RULES) - 1 else set()
            numbers.add(number)
            mine.append(fault)
            kept.append(fault)
        if not mine:
            print("no fault for", name)
    return kept
