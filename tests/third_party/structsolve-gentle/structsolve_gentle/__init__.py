"""Slack rescaling of half the margin error, as a surrogate by name."""

from structsolve import Named, hookimpl


@hookimpl
def structsolve_surrogates():
    from structsolve.surrogates import BiCriteria

    def gentle():
        from ._psi import Gentle

        return BiCriteria(Gentle())

    return [Named("gentle", gentle, "slack rescaling of half the margin")]
