"""The Python contract as text: every name of structsolve.plugin and every hook, with signatures.

    python tests/shared/python_contract.py

writes it to docs/contracts/NUMBER.txt; tests/registry/test_python_contract.py compares.
"""

import inspect
import re
from pathlib import Path

from structsolve import hookspecs, plugin

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "contracts"


def signature(function):
    """Return the parameters of a callable without types; defaults as they print."""
    parts = inspect.signature(function).parameters.values()
    parts = [part.replace(annotation=inspect.Parameter.empty) for part in parts]
    return str(inspect.Signature(parts))


def members(cls):
    """Return a line for each public method and attribute of a class, inherited ones too."""
    ours = [vars(base) for base in cls.__mro__ if base.__module__.startswith("structsolve")]
    lines = []
    names = {n for own in ours for n in own if not n.startswith("_")}
    if is_protocol(cls):
        names |= {*inspect.get_annotations(cls), *({"__call__"} & {*vars(cls)})}
    for name in sorted(names):
        value = inspect.getattr_static(cls, name, None)
        plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        lines.append(f"    {name}{signature(plain) if callable(plain) else ''}")
    return lines


def is_protocol(value):
    """Return whether a value is a protocol, which nobody calls."""
    return bool(getattr(value, "_is_protocol", False))


def written():
    """Return the contract's lines."""
    lines = []
    for name in sorted(set(plugin.__all__) - {"CONTRACT"}):
        value = getattr(plugin, name)
        if inspect.isclass(value) and issubclass(value, Exception):
            lines.append(f"class {name}")
        elif is_protocol(value):
            lines += [f"protocol {name}", *members(value)]
        elif inspect.isclass(value):
            lines += [f"class {name}{signature(value)}", *members(value)]
        else:
            lines.append(f"{name}{signature(value) if callable(value) else ''}")
    for name, hook in sorted(vars(hookspecs).items()):
        if name.startswith("structsolve_"):
            lines.append(f"hook {name}{signature(hook)}")
    return lines


def by_name(lines):
    """Return lines by their names, with those of their classes."""
    owner, full = "", {}
    for line in lines:
        name = line.partition("(")[0]
        if line[0] != " ":
            owner = name
        full[name if owner == name else f"{owner}.{name.strip()}"] = line
    return full


def takes_what(old, new):
    """Return whether a signature takes all calls of another one."""
    between = re.compile(r", (?![^(]*\))")
    olds, news = (
        list(filter(None, between.split(line.partition("(")[2][:-1]))) for line in (old, new)
    )
    kept = all(b in (a, f"{a}={b.partition('=')[2]}") for a, b in zip(olds, news))
    return len(olds) <= len(news) and kept and all("=" in b for b in news[len(olds) :])


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{plugin.CONTRACT}.txt").write_text("\n".join(written()) + "\n", encoding="utf-8")
