"""A plugin that counts oracle calls of any plugin: a wrapper around the hook's result."""

from structsolve import hookimpl

from ._oracle import Counted

#: Oracles bound so far; each counts its calls.
counted = []


@hookimpl(wrapper=True)
def structsolve_oracle(space):
    bind = yield  # the result of the first plugin or the space; None without any
    if bind is None:
        return None

    def bind_counted(layout):
        counted.append(Counted(bind(layout)))
        return counted[-1]

    return bind_counted
