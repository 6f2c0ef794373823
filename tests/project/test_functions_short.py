"""A function can be read in one go: at most 60 lines of code, and six arguments by position."""

import ast
import functools
import io
import tokenize
from bisect import bisect_left, bisect_right

from doc_code import ROOT

LINES, POSITIONAL = 60, 6


def rows_of_code(text):
    """Return the numbers of rows with more than blanks and comments."""
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    rows = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in layout:
            rows |= {*range(token.start[0], token.end[0] + 1)}
    return sorted(rows)


def functions():
    """Yield file and name, lines of code at most and positional arguments of every function."""
    for folder in ("structsolve", "plugins"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            code, rest = functools.partial(rows_of_code, text), [("", ast.parse(text))]
            while rest:
                owner, node = rest.pop()
                for child in ast.iter_child_nodes(node):
                    name = owner
                    if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                        name = f"{owner}.{child.name}".lstrip(".")
                    rest.append((name, child))
                    if isinstance(child, ast.FunctionDef):
                        place = f"{path.relative_to(ROOT).as_posix()} {name}"
                        yield place, lines(child, code), positional(child)


def lines(function, code):
    if (most := function.end_lineno - function.lineno + 1) <= LINES:
        return most  # tokens of all files take long
    return lines_of_code(function, code())


def lines_of_code(function, code):
    parts = [function]
    if ast.get_docstring(function) is not None:
        parts.append(function.body[0])
    counts = [bisect_right(code, p.end_lineno) - bisect_left(code, p.lineno) for p in parts]
    return counts[0] - sum(counts[1:])


def positional(function):
    names = [a.arg for a in function.args.posonlyargs + function.args.args]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def test_functions_are_short_and_take_few_arguments_by_position():
    every = list(functions())
    assert len(every) > 3000
    assert not [place for place, n, _ in every if n > LINES]
    assert not [place for place, _, n in every if n > POSITIONAL]


def test_what_counts():
    text = '''
def f(self, a, b=(
    1,  # no row of its own
), *, c):
    """Not code."""

    # Nor this.
    return [
        a,
    ]
'''
    function = ast.parse(text).body[0]
    assert (lines_of_code(function, rows_of_code(text)), positional(function)) == (6, 2)
