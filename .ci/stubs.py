"""Writes a stub (.pyi) beside every public .pyx, from its signatures and docstrings.

The build calls it (setup.py); by hand, in the root of the checkout: ``python .ci/stubs.py``.  Types
of arguments, results and attributes are their annotations or C types, or else what the numpydoc
docstring of the function, the class or a base class says.  Prose becomes Any.
"""

import ast
import builtins
import os.path
import re
from pathlib import Path
from textwrap import indent
from types import SimpleNamespace

from Cython.CodeWriter import ExpressionWriter
from Cython.Compiler import Nodes
from Cython.Compiler.TreeFragment import parse_from_strings

C_TYPES = {"bint": "bool", "double": "float", "float": "float", "void": "None"}
OBJECTS = {None, "object", "ndarray", "memoryview", "dict", "list", "tuple"}  # docstrings say more
WORDS = {"array": "ArrayLike", "csr_matrix": "Any", "dtype": "DTypeLike", "hashable": "Hashable"}
WORDS |= {"callable": "Callable[..., Any]", "ndarray": "NDArray[Any]", "object": "Any"}
WORDS |= {word: f"{word.capitalize()}[Any]" for word in ("iterable", "sequence")}
HOMES = {}  # modules by the names in them
for module, words in {
    "collections.abc": "Callable Hashable Iterable Mapping Sequence",
    "numpy.typing": "ArrayLike DTypeLike NDArray",
    "typing": "Any NamedTuple final",
}.items():
    HOMES |= {word: [module] for word in words.split()}


def typed(phrase):
    """Return the annotation for a type in a numpydoc docstring; "Any" for prose."""
    phrase = re.sub(
        r"(,? or|,)? (of shape \((\([^()]*\)|[^()])*\)|like \w+)|, default=.*", "", phrase
    )
    phrase = re.sub(r'\{".*"\}', "str", re.sub(r", optional$", " or None", phrase))
    phrase = re.sub(
        r"tuple of \((.*?)\)",  # without spaces, so that nothing splits it
        lambda m: f"tuple[{','.join(typed(x).replace(' ', '') for x in m[1].split(', '))}]",
        phrase,
    )
    if dtype := re.fullmatch(r"ndarray of ([a-z]+\d+)( or .*float\d+)?", phrase):
        return f"NDArray[np.{'floating' if dtype[2] else dtype[1]}]"
    parts = re.split(r",? or |, ", phrase)
    if len(parts) > 1:
        types = list(dict.fromkeys(map(typed, parts)))
        return "Any" if "Any" in types else " | ".join(types)
    if pair := re.fullmatch(r"(dict|mapping) of (\w+) to (.*)", phrase):
        kind = "dict" if pair[1] == "dict" else "Mapping"
        return f"{kind}[{typed(pair[2])}, {typed(pair[3])}]"
    if many := re.fullmatch(r"(list|tuple) of (.*)", phrase):
        return f"{many[1]}[{typed(many[2])}{', ...' if many[1] == 'tuple' else ''}]"
    if re.fullmatch(r"\w+(\[.*\])?", phrase):
        return WORDS.get(phrase, phrase)
    return WORDS.get(phrase.partition(" of ")[0], "Any")


def section(docs, *titles):
    """Return the types in sections of the first docstring that has one, by name or number."""
    for doc, title in ((doc or "", title) for doc in docs for title in titles):
        if match := re.search(rf"^( *){title}\n *-+\n((?:.|\n)*?)(^ *\w.*\n *-+\n|\Z)", doc, re.M):
            types = {}
            for line in re.findall(rf"^{match[1]}(\S.*)$", match[2], re.M):
                names, colon, phrase = line.partition(" : ")
                types |= dict.fromkeys(
                    names.split(", ") if colon else [len(types)], typed(phrase if colon else line)
                )
            yield types


def said(name, docs, *titles):
    """Return the type that the first docstring with one says of a name."""
    return next((types[name] for types in section(docs, *titles) if name in types), "Any")


def c_or(node, words):
    """Return the Python type of a C type, or what a docstring says where that says more."""
    name = getattr(node, "name", None)
    if getattr(node, "is_basic_c_type", False) or re.fullmatch(r"int\d+_t", name or ""):
        return C_TYPES.get(name, "int")
    return words if name in OBJECTS or words == f"{name} | None" else name


def annotated(node):
    """Return the type that an annotation gives, or None."""
    return node and (getattr(node.expr, "value", None) or ExpressionWriter().write(node.expr))


def statements(node):
    """Yield the statements of a body, without lists in lists."""
    if isinstance(node, Nodes.StatListNode):
        for inner in node.stats:
            yield from statements(inner)
    elif node is not None:
        yield node


def functions(nodes):
    """Return the functions that Python can call, by name."""
    made = {n.name: n for n in nodes if isinstance(n, Nodes.DefNode)}
    c = [n for n in nodes if isinstance(n, Nodes.CFuncDefNode) and n.overridable]
    return made | {n.declarator.base.name: n for n in c}


def function(name, node, line=()):
    """Return the lines for a function, or for a method of the first of a line of classes."""
    is_c = isinstance(node, Nodes.CFuncDefNode)
    docs = [node.doc, *(own.methods[name].doc for own in line if name in own.methods)]
    if made := name in ("__init__", "__cinit__"):
        docs += [own.doc for own in line]
    words = [d.decorator.name for d in node.decorators or []]
    arguments = []
    for arg in node.declarator.args if is_c else node.args:
        word = arg.declarator.name or arg.base_type.name
        kind = c_or(arg.base_type, said(word, docs, "Parameters"))
        default = ExpressionWriter().write(arg.default) if arg.default else None
        if default == "None" and not re.search("None|^Any$", kind):
            kind += " | None"
        arguments.append(
            f"{word}: {annotated(arg.annotation) or kind}" + f" = {default}" * bool(default)
        )
    if line and "staticmethod" not in words:
        arguments[0] = "cls" if name == "__cinit__" else "self"
    results = list(next(section(docs, "Returns"), {}).values())
    result = results[0] if len(results) == 1 else f"tuple[{', '.join(results)}]"
    if not results:
        nothing = node.doc and not node.doc.startswith("Return") and "property" not in words
        result = c_or(getattr(node, "base_type", None), "None" if nothing else "Any")
    if made:
        name, result = ("__init__", "None") if name == "__init__" else ("__new__", line[0].name)
    elif not is_c:
        result = annotated(node.return_type_annotation) or result
    above = "".join(f"@{word}\n" for word in words)
    return f"{above}def {name}({', '.join(arguments)}) -> {result}: ..."


class Module:
    """The classes and functions of a .pyx and its .pxd, and its stub."""

    modules = {}

    def __init__(self, path, name):
        self.name, self.path, self.classes, body = name, path, {}, []
        for place, level in ((path.with_suffix(".pxd"), "module_pxd"), (path, None)):
            self.code = place.read_text("utf-8") if place.exists() else ""
            body += statements(parse_from_strings(name, self.code, level=level).body)
        for node in body:
            if isinstance(node, (Nodes.CClassDefNode, Nodes.PyClassDefNode)):
                name = getattr(node, "class_name", None) or node.name
                own = self.classes.setdefault(name, SimpleNamespace(name=name, body=[]))
                own.base = node.bases.args[0].name if node.bases and node.bases.args else None
                own.doc, own.final = node.doc, bool(node.decorators)
                own.body += statements(node.body)
                own.methods = functions(own.body)
        self.functions = functions(body)
        self.modules[self.name] = self

    def home(self, name):
        """Return the nearest module that defines a name."""
        homes = HOMES.get(name, [])
        near = [(len(os.path.commonprefix([home, self.name])), -len(home), home) for home in homes]
        return self.name if name in self.classes else max(near)[2] if near else None

    def line(self, name):
        """Return a class and its bases, as far as they are compiled."""
        own = self.classes.get(name)
        above = self.modules.get(own and self.home(own.base))
        return [own, *(above.line(own.base) if above else [])] if own else []

    def class_lines(self, own):
        line = self.line(own.name)
        for node in own.body:
            if isinstance(node, Nodes.CVarDefNode) and node.visibility in ("public", "readonly"):
                for word in [declared.name for declared in node.declarators]:
                    words = said(word, [o.doc for o in line], "Attributes", "Parameters")
                    kind = c_or(node.base_type, words)
                    if node.visibility == "public":
                        yield f"{word}: {kind}"
                    else:
                        yield f"@property\ndef {word}(self) -> {kind}: ..."
            elif isinstance(node, Nodes.ExprStatNode) and node.expr.annotation:  # of a NamedTuple
                hides = "  # type: ignore[assignment]" * hasattr(tuple, node.expr.name)
                yield f"{node.expr.name}: {annotated(node.expr.annotation)}{hides}"
        made = "__init__" if "__init__" in own.methods else "__cinit__"
        for name, node in own.methods.items():
            if name in (made, "__call__") and not node.starstar_arg or name[0] != "_":
                yield function(name, node, line)

    def stub(self):
        """Return the text of the stub."""
        parts = [
            f"{name}: {kind or 'Any'}"
            for name, kind in re.findall(r"^([A-Z]\w+)(?:: (\w+))? = ", self.code, re.M)
        ]
        for name, own in self.classes.items():
            body = "\n".join(self.class_lines(own)) or "..."
            base = f"({own.base})" if own.base else ""
            if name[0] != "_":
                parts.append(
                    "@final\n" * own.final + f"class {name}{base}:\n" + indent(body, "    ")
                )
        parts += [function(f, node) for f, node in self.functions.items() if f[0] != "_"]
        text, lines = "\n".join(parts), set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                home = self.home(node.id)
                if home not in (None, self.name):
                    lines.add(f"from {home} import {node.id}")
                elif home is None and node.id != "np" and not hasattr(builtins, node.id):
                    raise ValueError(f"{self.path}: found the type {node.id}, expected a class")
        return "\n".join(
            ["# Made by .ci/stubs.py.", "import numpy as np", *sorted(lines), text, ""]
        )


def write_stubs(folders):
    """Write the stubs that are missing or old, and remove those whose .pyx is gone."""
    for package, folder in folders.items():
        for path in sorted(Path(folder).rglob("*.py*")):
            name = ".".join([package, *path.relative_to(folder).with_suffix("").parts])
            if path.suffix == ".pyi" and not path.with_suffix(".pyx").exists():
                path.unlink()
            elif path.suffix in (".py", ".pyx") and "._" not in name:
                for word in re.findall(r"^(?:cdef )?class (\w+)", path.read_text("utf-8"), re.M):
                    HOMES.setdefault(word, []).append(name)
                if path.suffix == ".pyx":
                    Module(path, name)
    for module in Module.modules.values():
        text, path = module.stub(), module.path.with_suffix(".pyi")
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


if __name__ == "__main__":
    write_stubs({"structsolve": "structsolve", "structsolve.plugins": "plugins"})
