"""Answers of one compiled call beside those of the general way."""

import numpy as np

from structsolve import StructuredSVM


def outcome(call, *given, **named):
    """Types and values of an answer, or of the error."""
    try:
        return _plain(call(*given, **named))
    except Exception as error:
        return type(error), str(error)


def _plain(given):
    if isinstance(given, np.ndarray):
        flags = given.flags
        return given.dtype, given.shape, flags.writeable, flags.c_contiguous, given.tolist()
    if isinstance(given, (list, tuple)):
        return type(given), [_plain(one) for one in given]
    return type(given), given


def both(model, X, direct=None, ks=(1, 3)):
    """Check answers against the general way's; `direct` says whether one call gives them.

    The best labels, k best and marginals; the latter two only where an example has many nodes.
    """
    single = model.space_.structure.single_node
    asked = [("predict", "oracle", ())]
    if direct is not None or not single:
        asked += [("predict_kbest", "kbest", (k,)) for k in ks]
        asked += [("predict_marginals", "projection", ())]
    row = np.ones((1, 6))
    for method, what, given in asked:
        outcome(getattr(model, method), row if single else [row], *given)
        if direct is not None:
            one_call = direct and (what == "oracle" or (model.space_.plain_rows and not single))
            assert (model._direct(what, X, *given) is not None) == one_call, what
        alike(model, method, X, *given)


def alike(model, method, *given, **named):
    """Check the answer of a method against the general way's."""
    own, general = (
        outcome(getattr(m, method), *given, **named) for m in (model, fitted_general(model))
    )
    assert own == general, (method, given[1:], named)


class General(StructuredSVM):
    """Answers the general way only."""

    def _direct(self, what, X, k=1):
        return None


def fitted_general(model):
    general = General.__new__(General)
    general.__dict__.update({k: v for k, v in vars(model).items() if k != "_operators"})
    return general
