"""Parameters by name for structures, losses, surrogates and solvers, as scikit-learn reads them."""

from __future__ import annotations

import inspect
from typing import Any


class Params:
    """``get_params`` / ``set_params`` / ``repr`` from the constructor's signature.

    It follows scikit-learn's protocol, so ``clone`` and ``GridSearchCV`` reach into nested
    objects (``structure__start_end``), without importing scikit-learn.
    """

    @classmethod
    def _param_names(cls) -> list[str]:
        if cls.__init__ is object.__init__:
            return []
        parameters = inspect.signature(cls.__init__).parameters.values()
        return [p.name for p in parameters if p.name != "self" and p.kind != p.VAR_KEYWORD]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor arguments.

        Parameters
        ----------
        deep : bool, default=True
            Include those of nested objects, as ``outer__inner``.

        Returns
        -------
        dict of str to object
        """
        params: dict[str, Any] = {}
        for name in self._param_names():
            value = getattr(self, name)
            params[name] = value
            if deep and hasattr(value, "get_params") and not isinstance(value, type):
                params.update((f"{name}__{k}", v) for k, v in value.get_params().items())
        return params

    def set_params(self, **params: Any) -> Params:
        """Set arguments by name.

        Parameters
        ----------
        **params
            Nested ones as ``outer__inner``.

        Returns
        -------
        Params
            Itself.

        Raises
        ------
        ValueError
            For an unknown name.
        """
        known = self._param_names()
        for key, value in params.items():
            name, _, inner = key.partition("__")
            if name not in known:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; known: {known}")
            if inner:
                getattr(self, name).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        arguments = ", ".join(f"{k}={getattr(self, k)!r}" for k in self._param_names())
        return f"{type(self).__name__}({arguments})"
