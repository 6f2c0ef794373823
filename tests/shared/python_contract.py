"""The Python contract as text: every name of structsolve.plugin and every hook, with signatures.

    python tests/shared/python_contract.py

writes it to docs/contracts/NUMBER.txt; tests/registry/test_python_contract.py compares.
"""

import inspect
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
    for name in sorted({n for own in ours for n in own if not n.startswith("_")}):
        value = inspect.getattr_static(cls, name)
        plain = value.__func__ if isinstance(value, (classmethod, staticmethod)) else value
        lines.append(f"    {name}{signature(plain) if callable(plain) else ''}")
    return lines


def written():
    """Return the contract's lines."""
    lines = []
    for name in sorted(set(plugin.__all__) - {"CONTRACT"}):
        value = getattr(plugin, name)
        if inspect.isclass(value) and issubclass(value, Exception):
            lines.append(f"class {name}")
        elif inspect.isclass(value):
            lines += [f"class {name}{signature(value)}", *members(value)]
        else:
            lines.append(f"{name}{signature(value) if callable(value) else ''}")
    for name, hook in sorted(vars(hookspecs).items()):
        if name.startswith("structsolve_"):
            lines.append(f"hook {name}{signature(hook)}")
    return lines


def with_owners(lines):
    """Return lines that name their class, so that sets of them can be compared."""
    owner, full = "", set()
    for line in lines:
        owner = "" if line[0] != " " else owner
        full.add(owner + line)
        owner = line.partition("(")[0] + "." if line.startswith("class ") else owner
    return full


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    (FOLDER / f"{plugin.CONTRACT}.txt").write_text("\n".join(written()) + "\n", encoding="utf-8")
