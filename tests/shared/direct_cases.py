"""Answers of one compiled call beside those of the general way."""

import numpy as np

from structsolve import StructuredSVM


def outcome(call):
    """Types and values of an answer, or of the error."""
    try:
        given = call()
    except Exception as error:
        return type(error), str(error)
    each = [given] if isinstance(given, np.ndarray) else list(given)
    return type(given), [(y.dtype, y.flags.writeable, y.tolist()) for y in each]


def both(model, X, direct=None):
    """Check answers against the general way's; `direct` says whether one call gives them."""
    row = np.ones((1, 6))
    outcome(lambda: model.predict(row if model.space_.structure.single_node else [row]))
    if direct is not None:
        assert (model._direct_labels(X) is not None) == direct
    general = fitted_general(model)
    assert outcome(lambda: model.predict(X)) == outcome(lambda: general.predict(X))


def fitted_general(model):
    class General(StructuredSVM):
        def _direct_labels(self, X):
            return None

    general = General.__new__(General)
    general.__dict__.update({k: v for k, v in vars(model).items() if k != "_operators"})
    return general
