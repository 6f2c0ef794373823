"""Declarations of plugins, looked up by name: ``name``, ``distribution:name``, and arguments."""

from __future__ import annotations

import multiprocessing
from typing import Any

from ..hookspecs import Lazy, Named
from ..utils.suggest import a_type, did_you_mean
from .arguments import arguments_of, create, refuse_words
from .distributions import DISABLED
from .plugin import Plugin, one

# A method of all objects of a kind, and what messages call them.
_OBJECTS = {
    "metrics": ("__call__", "a callable scorer(estimator, X, y)"),
    "readers": ("read", "a Reader object"),
    "solvers": ("start", "a Solver object"),
    "structures": ("make_space", "a Structure object"),
    "surrogates": ("bind", "an object with bind()"),
}


class Names:
    """The names in a list of plugins; :class:`Registry` fills the list.

    Attributes
    ----------
    plugins : list of Plugin
        Registered, broken and switched off.
    """

    def __init__(self) -> None:
        self.plugins: list[Plugin] = []

    def names(self, kind: str) -> list[str]:
        """Return the names of one kind.

        Parameters
        ----------
        kind : str
            One of ``LISTS``, such as "structures".

        Returns
        -------
        list of str
            Sorted.
        """
        return sorted({d.name for _, d in self._declared(kind)})

    def loss_names(self) -> list[str]:
        """Return the names of all losses.

        Returns
        -------
        list of str
            Sorted.
        """
        return sorted({n for p in self.plugins for n in p.declares.get("loss_names", ())})

    def find(self, kind: str, name: str, source: str = "") -> Named:
        """Return a plugin's declaration of a name.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        name : str
            ``name``, or ``distribution:name`` if two distributions provide it.
        source : str, optional
            The distribution (optionally with version) that must provide it, from :meth:`source_of`.

        Returns
        -------
        Named

        Raises
        ------
        ValueError
            If no plugin declares the name (known names and broken plugins are listed), several
            do, or ``source`` is missing.
        """
        matches = [(p, d) for p, d in self._declared(kind) if d.name == name]
        if not matches:
            owner, _, rest = name.partition(":")
            matches = [
                (p, d) for p, d in self._declared(kind) if d.name == rest and p.is_called(owner)
            ]
        if source:
            # A script's plugin has no distribution: it may be under development.
            there = [
                m for m in matches if not m[0].distribution or m[0].is_called(source.split(" ")[0])
            ]
            if not there:
                others = f"; {matches[0][0].label} brings another" if matches else ""
                raise ValueError(
                    f"{one(kind)} {name!r} comes from the distribution {source}, which is not "
                    f"installed or not loaded{others}{self.broken_note()}"
                )
            matches = there
        if len(matches) > 1:
            labels = " and ".join(p.label for p, _ in matches)
            forms = " or ".join(repr(f"{p.source}:{d.name}") for p, d in matches)
            raise ValueError(
                f"{one(kind)} {name!r} is declared by {labels}; write {forms}, or switch one off: "
                f"{DISABLED}={matches[-1][0].key}"
            )
        if not matches:
            raise ValueError(
                f"unknown {one(kind)} {name!r}{did_you_mean(name, self.names(kind))}; known: "
                f"{self.names(kind)}{self.broken_note()}{_worker_note()}"
            )
        return matches[0][1]

    def split(self, kind: str, text: str) -> tuple[str, list[Any], dict[str, Any]]:
        """Return the name in front of arguments, and the arguments.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        text : str
            As for :meth:`make`.

        Returns
        -------
        name : str
            All of ``text`` if no plugin declares the name before a colon.
        arguments : list
            Positional.
        params : dict of str to object

        Raises
        ------
        ValueError
            If an argument without a key follows one with a key, a key comes twice, or an argument
            is empty.

        Examples
        --------
        >>> from structsolve import registry
        >>> registry.default().split("lp_backends", "cvxpy:OSQP,eps_abs=1e-8")
        ('cvxpy', ['OSQP'], {'eps_abs': 1e-08})
        """
        for count in (2, 1):
            *head, rest = text.split(":", count)
            if len(head) == count and self._has(kind, ":".join(head)):
                return (":".join(head), *arguments_of(one(kind), text, rest))
        return text, [], {}

    def has(self, kind: str, text: Any) -> bool:
        """Return whether a plugin declares the name in front of arguments.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        text : object
            As for :meth:`make`; False if it is no str.

        Returns
        -------
        bool
        """
        return isinstance(text, str) and self._has(kind, self.split(kind, text)[0])

    def make(self, kind: str, text: str, /, **params: Any) -> Any:
        """Return a new object by name.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        text : str
            ``name`` or ``name:argument,key=value``, optionally after ``distribution:``.  Numbers,
            true, false and none are converted.
        **params
            Further arguments, which override those of the text.

        Returns
        -------
        object

        Raises
        ------
        ValueError
            If the name is unknown, the factory does not take the arguments, or the object has
            another name, so that model files could not find it.
        TypeError
            If the factory makes something else.
        """
        name, arguments, given = self.split(kind, text)
        declared = self.find(kind, name)
        refuse_words(f"{one(kind)} {text!r}", declared.factory, arguments, given)
        made = create(kind, text, declared.factory, *arguments, **{**given, **params})
        # Files hold others by the user's name.
        if kind == "structures" and self._owner(kind, made) is None:
            raise ValueError(
                f"{one(kind)} {text!r}: its plugin made {a_type(made)} with name = "
                f"{getattr(made, 'name', None)!r}, expected {declared.name!r} as declared: files "
                "hold models by that name"
            )
        if kind in _OBJECTS and kind != "solvers":  # whose parameters are named first
            _check_made(kind, text, made)
        return made

    def object_of(self, kind: str, given: Any) -> Any:
        """Return the object of a name, and an object as it is.

        Parameters
        ----------
        kind : {"readers", "solvers", "structures", "surrogates"}
            Its singular is the argument's name in messages.
        given : str or object
            A name as for :meth:`make`.

        Returns
        -------
        object

        Raises
        ------
        ValueError
            As of :meth:`make`.
        TypeError
            For anything else, such as a class or None; the message names the argument and the
            known names.
        """
        if isinstance(given, str):
            made = self.make(kind, given)
            _check_made(kind, given, made)
            return made
        if not _fits(kind, given):
            raise TypeError(
                f"{one(kind)} is {given!r}, expected a name (known: {self.names(kind)}) or "
                f"{_OBJECTS[kind][1]}"
            )
        return given

    def factory_of(self, kind: str, text: str) -> Any:
        """Return the factory of a name, ignoring its arguments.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        text : str
            As for :meth:`make`.

        Returns
        -------
        callable

        Raises
        ------
        ValueError
            As of :meth:`find`.
        """
        return self.find(kind, self.split(kind, text)[0]).factory

    def class_of(self, kind: str, name: str, source: str = "") -> Any:
        """Return the class that a plugin declares under a name, imported.

        Parameters
        ----------
        kind, name, source
            As for :meth:`find`.

        Returns
        -------
        type

        Raises
        ------
        ValueError
            As of :meth:`find`.
        ImportError
            If another package's module cannot be imported, or lacks the class.
        """
        declared = self.find(kind, name, source)
        factory = declared.factory
        if not isinstance(factory, Lazy):
            return factory
        try:
            return factory.load()
        except Exception as error:
            owner = next(p for p, d in self._declared(kind) if d is declared)
            if owner.is_ours:
                raise
            reason = f"{factory.path!r} cannot be imported: {type(error).__name__}: {error}"
            raise ImportError(f"{one(kind)} {name!r} of {owner.label}: {reason}") from error

    def owner_of(self, kind: str, text: str) -> Plugin:
        """Return the plugin that declares a name.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        text : str
            As for :meth:`make`.

        Returns
        -------
        Plugin

        Raises
        ------
        ValueError
            As of :meth:`find`.
        """
        declared = self.find(kind, self.split(kind, text)[0])
        return next(p for p, d in self._declared(kind) if d is declared)

    def _has(self, kind: str, name: str) -> bool:
        owner, _, rest = name.partition(":")
        return any(
            d.name == name or (d.name == rest and p.is_called(owner))
            for p, d in self._declared(kind)
        )

    def _declared(self, kind: str) -> list[tuple[Plugin, Named]]:
        return [(p, d) for p in self.plugins for d in p.declares.get(kind, ())]

    def _owner(self, kind: str, value: Any) -> tuple[Plugin, Named] | None:
        declared = self._declared(kind)
        own = getattr(value, "name", None)
        exact = [m for m in declared if _class_of(m[1].factory) is type(value)]
        # Two plugins may provide a name: the class decides.
        if named := next((m for m in exact if m[1].name == own), None):
            return named
        for plugin, item in declared:
            # For a factory that is not a class, the object's name decides.
            fits = not isinstance(item.factory, type) or isinstance(value, item.factory)
            if item.name == own and fits:
                return plugin, item
        return exact[0] if exact else None

    def first_with(self, file_param: str) -> str | None:
        """Return the first structure with a parameter that the shell reads from a file.

        Parameters
        ----------
        file_param : str
            An entry of ``Structure.file_params``, such as "hierarchy".

        Returns
        -------
        str or None
            Name of the structure; ours come before others.
        """
        return next(
            (
                d.name
                for _, d in self._declared("structures")
                if file_param in getattr(d.factory, "file_params", ())
            ),
            None,
        )

    def broken_note(self) -> str:
        """Return a sentence about the disabled and broken plugins, for error messages.

        Returns
        -------
        str
            Empty if all plugins were loaded.
        """
        broken = [f"{p.label}: {p.error}" for p in self.plugins if p.error]
        off = [p.label for p in self.plugins if p.off]
        note = f". Not loaded: {'; '.join(broken)}" if broken else ""
        return note + (f". Switched off: {'; '.join(off)}" if off else "")


def _fits(kind: str, made: Any) -> bool:
    return not isinstance(made, type) and hasattr(made, _OBJECTS[kind][0])


def _check_made(kind: str, text: str, made: Any) -> None:
    if not _fits(kind, made):
        expected = _OBJECTS[kind][1]
        raise TypeError(f"{one(kind)} {text!r}: its plugin made {made!r}, expected {expected}")


def _class_of(factory: Any) -> Any:
    """Return the class that a factory is; None for one that no object can be of yet."""
    return factory.imported() if isinstance(factory, Lazy) else factory


def _worker_note() -> str:
    if multiprocessing.current_process().name == "MainProcess":
        return ""
    return (
        ". This is a worker process: a script's plugins arrive with an estimator that is "
        "sent, or by registry.default().register() in a function that runs here"
    )
