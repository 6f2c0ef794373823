"""Golden-section search over lam, available by name."""

from structsolve import Named, hookimpl


@hookimpl
def structsolve_searches():
    from ._golden import GoldenSection

    return [Named("golden", GoldenSection, "golden sections over lam, slack rescaling alone")]
