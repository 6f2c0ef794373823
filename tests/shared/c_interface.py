"""The public .pxd files, the record of what each number of the C interface held, and additions.

    python tests/shared/c_interface.py              # record the files under their number
    python tests/shared/c_interface.py --unreleased    # earlier numbers take the edits too

``c_interface_record/MAJOR.MINOR.txt`` holds the files without comments: of the newest number
all of them, of an earlier one those that the next changed.
"""

import re
import sys
from pathlib import Path

import structsolve

ROOT = Path(structsolve.get_include()) / "structsolve"
RECORD = Path(__file__).parent / "c_interface_record"
NUMBER = "abi_number.pxd"
MARK = "from structsolve.abi_number cimport structsolve_abi_marker"

# Classes that only structsolve creates, never subclassed or held by value outside: may grow.
GROWING = {"PartLayout", "LabelPlane", "LinearPotentials", "FeatureRows", "NodeCosts", "View"}


def stripped(text):
    """Return declarations without comments, one per line; C code is unchanged."""
    pieces = text.split('"""')
    for k in range(0, len(pieces), 2):
        pieces[k] = re.sub(r"[ \t]*#.*", "", pieces[k])
        pieces[k] = re.sub(r"\([^()]*\)", lambda m: re.sub(r"\s+", " ", m[0]), pieces[k])
        pieces[k] = re.sub(r"\n{2,}", "\n", pieces[k])
    return '"""'.join(pieces).lstrip("\n").rstrip("\n") + "\n"


def public():
    """Return the stripped text of every public file by path, with the table of vector loops."""
    files = {NUMBER: stripped((ROOT / NUMBER).read_text(encoding="utf-8"))}
    for path in sorted(ROOT.rglob("*.pxd")):
        text = path.read_text(encoding="utf-8")
        if MARK in text.splitlines():
            files[path.relative_to(ROOT).as_posix()] = stripped(text)
    header = (ROOT / "simd" / "loops.h").read_text(encoding="utf-8")
    files["simd/loops.h"] = re.sub(r"\n{2,}", "\n", re.sub(r"/\*.*?\*/", "", header, flags=re.S))
    return files


def number_of(files):
    return re.search(r'STRUCTSOLVE_ABI_NUMBER "([^"]*)"', files[NUMBER])[1]


def order(number):
    return tuple(map(int, number.split(".")))


def read(path):
    """Return the files of a record by name, each behind a line with it."""
    _, *pairs = re.split(r"^=== (.*)\n", path.read_text(encoding="utf-8"), flags=re.M)
    return dict(zip(pairs[::2], pairs[1::2]))


def recorded(folder=RECORD):
    """Return the files of every recorded number, newest first."""
    held, overlay = {}, {}
    for number in sorted((path.stem for path in folder.iterdir()), key=order, reverse=True):
        overlay = held[number] = {**overlay, **read(folder / f"{number}.txt")}
    return held


def write(files, path):
    text = "".join(f"=== {name}\n{files[name]}" for name in sorted(files))
    path.write_text(text, encoding="utf-8")


def record(files, folder=RECORD, keep=True):
    """Write the files under their number; with `keep`, the previous number keeps changed files."""
    number = number_of(files)
    before = recorded(folder)
    earlier = [other for other in before if order(other) < order(number)]
    if earlier and keep:
        last = before[earlier[0]]
        changed = {k: v for k, v in last.items() if files.get(k) != v}
        write(changed, folder / f"{earlier[0]}.txt")
    write(files, folder / f"{number}.txt")


def declarations(text):
    """Return blocks of a file (classes, structs, enums, ...) with their lines, and single lines."""
    blocks, current = {}, None
    for line in text.splitlines():
        if not line.startswith((" ", "}", "#")) and line:
            current = blocks.setdefault(line, [])
        elif current is not None and line.startswith(" ") and line.strip():
            current.append(line.strip())
    return blocks


def _split(lines):
    """Return fields, one by one, and methods."""
    fields, methods = [], []
    for line in lines:
        if "(" in line:
            methods.append(line)
        elif line != "pass":
            kind, names = re.fullmatch(r"(.*?)([\w\[\]]+(?:, [*\w\[\]]+)*)", line).groups()
            fields += [(kind.strip(), name) for name in names.split(", ")]
    return fields, methods


def _bare(kind):
    """Return a field's type without cdef, readonly etc.; pointers are as large as Py_ssize_t."""
    kind = re.sub(r"\b(cdef|readonly|public)\b", "", kind).strip()
    return "Py_ssize_t" if kind.endswith("*") else kind


def _field_kept(old, new):
    room = re.fullmatch(r"_(flag|room)\d", old[1]) is not None
    return old == new or (room and _bare(old[0]) == _bare(new[0]))


def broken(old, new):
    """Return what binaries compiled against `old` miss in `new`, both from `public()`."""
    missing = []
    for name in old:
        if name == NUMBER:
            continue
        there = declarations(new.get(name, ""))
        for head, lines in declarations(old[name]).items():
            if head.startswith(("cdef inline", "from ", "cimport ")):
                continue  # binaries have their own copy
            if head not in there:
                missing.append(f"{name}: {head}")
            else:
                missing += [f"{name}: {line}" for line in _lost(head, lines, there[head])]
    return missing


def _lost(head, old, new):
    """Return lines of a block that have changed or moved."""
    if head.startswith("cdef extern"):
        return [line for line in old if line not in new]
    if head.startswith(("cdef class", "cdef struct")):
        grows = re.split(r"\W", head)[2] in GROWING
        (fields, methods), (new_fields, new_methods) = _split(old), _split(new)
        lost = [
            f"{head} {' '.join(field)}"
            for k, field in enumerate(fields)
            if not (k < len(new_fields) and _field_kept(field, new_fields[k]))
        ]
        lost += [
            f"{head} {line}"
            for k, line in enumerate(methods)
            if not (k < len(new_methods) and (line == new_methods[k] or " _slot" in line))
        ]
        struct = head.startswith("cdef struct")
        if len(new_fields) > len(fields) and not (struct and grows):
            lost.append(f"{head} has grown by {new_fields[len(fields) :]}; take _flag or _room")
        if len(new_methods) > len(methods) and not grows:
            lost.append(f"{head} has grown by {new_methods[len(methods) :]}; take a _slot")
        return lost
    # Enumerations and the table of vector loops may grow at the end.
    return [f"{head} {line}" for k, line in enumerate(old) if new[k : k + 1] != [line]]


if __name__ == "__main__":
    record(public(), keep="--unreleased" not in sys.argv)
