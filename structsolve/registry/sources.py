"""Where a name comes from: the distribution, which model files record and require."""

from __future__ import annotations

from typing import Any

from .names import Names
from .plugin import Plugin


class Sources(Names):
    """The distributions of declared names."""

    def name_of(self, kind: str, value: Any) -> str | None:
        """Return the name under which the class of an object is declared.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        value : object

        Returns
        -------
        str or None
            None if no plugin declares it.
        """
        declared = self._owner(kind, value)
        return None if declared is None else declared[1].name

    def called(self, model: Any) -> str:
        """Return the name by which files call a model's class.

        Parameters
        ----------
        model : estimator

        Returns
        -------
        str
            The declared name; the name of the class if no plugin declares it.
        """
        return self.name_of("estimators", model) or type(model).__name__

    def source_of(self, kind: str, value: Any) -> str:
        """Return the distribution, with its version, that declares the class of an object.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        value : object or str
            The object, or its name.

        Returns
        -------
        str
            Empty for structsolve's own objects, and without a distribution.
        """
        if isinstance(value, str):
            name = self.split(kind, value)[0]
            wanted = self.find(kind, name) if self._has(kind, name) else None
            owner = next((m for m in self._declared(kind) if m[1] is wanted), None)
        else:
            owner = self._owner(kind, value)
        return "" if owner is None else _distribution(owner[0])

    def source_of_name(self, kind: str, text: str) -> str:
        """Return :meth:`source_of`, also for losses that have only a name.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        text : str
            ``name``, or ``name:arguments``.

        Returns
        -------
        str
        """
        if self._has(kind, self.split(kind, text)[0]) or kind != "losses":
            return self.source_of(kind, text)
        owners = [p for p in self.plugins if text in p.declares.get("loss_names", ())]
        # If several plugins have the name, any of them may provide the loss.
        return _distribution(owners[0]) if len(owners) == 1 else ""

    def require(self, kind: str, text: str, source: str) -> None:
        """Refuse a name whose distribution is missing.

        Parameters
        ----------
        kind : str
            One of ``LISTS``.
        text : str
            ``name``, or ``name:arguments``.
        source : str
            From :meth:`source_of_name`.

        Raises
        ------
        ValueError
            The message names the distribution.
        """
        name = self.split(kind, text)[0]
        if self._has(kind, name) or kind != "losses" or text not in self.loss_names():
            self.find(kind, name, source)


def _distribution(plugin: Plugin) -> str:
    if plugin.is_ours or not plugin.distribution:
        return ""
    return f"{plugin.distribution} {plugin.version}"
