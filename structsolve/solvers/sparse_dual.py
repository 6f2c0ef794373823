"""Lower bounds for L1-penalised random fields by a linear program over the last gradients."""

from __future__ import annotations

import numpy as np

# Points between the true label and a gradient's distribution that the program may mix.
SHARES = np.array([1.0, 0.99, 0.97, 0.94, 0.9, 0.8, 0.6, 0.3])
# Maximum number of rows added per round, and of rounds.
MOST_ROWS, ROUNDS = 2000, 12


class SparseDual:
    """Lower bounds of ``min_w R(w) + l1 ||w||_1``, where R is a mean negative log-likelihood.

    The dual is ``max_p sum_i u_i H(p_i)`` over distributions of labels with ``|g_j(p)| <= l1`` for
    every weight, where g is linear in p.  Each gradient of R belongs to such p, but slightly
    violates many rows.  The program mixes the last gradients' p, each with the point mass at the
    true label, whose g is 0 (the entropy of ``q = (1 - t) truth + t p`` is above t times that of
    p), and the best mixture so far.  Entropies are concave, so mixed values bound the mixture's
    from below.  Violated rows are added.  A last scaling removes the remaining violations, so the
    bound holds however accurately the program was solved.

    Parameters
    ----------
    size : int
        Number of gradients to keep.
    weights : ndarray of shape (n,)
        Weights u of the examples, which sum to 1.

    Examples
    --------
    One example of weight 1 with two labels, of which the true one has probability 0.8:

    >>> import numpy as np
    >>> dual = SparseDual(1, np.ones(1))
    >>> entropy = -0.8 * np.log(0.8) - 0.2 * np.log(0.2)
    >>> dual.add(np.array([0.2]), np.array([entropy]), np.array([-np.log(0.8)]))
    >>> bool(abs(dual.bound(0.2) - entropy) < 1e-6), bool(dual.bound(0.1) > entropy / 2)
    (True, True)
    """

    def __init__(self, size: int, weights: np.ndarray):
        self.size, self._weights = size, weights
        self.slopes: list[np.ndarray] = []
        self.values: list[np.ndarray] = []

    def add(self, g: np.ndarray, entropies: np.ndarray, losses: np.ndarray) -> None:
        """Add a gradient in place of the oldest; the best mixture is kept.

        Parameters
        ----------
        g : ndarray of shape (dim,)
            Minus the gradient of R; it is not copied.
        entropies : ndarray of shape (n,)
            Entropy of the labels of each example.
        losses : ndarray of shape (n,)
            Minus the log-probability of each true label.
        """
        values = mixed_entropies(entropies, losses) @ self._weights
        if not self.slopes:  # the first entry is the mixture's
            self.slopes, self.values = [np.zeros_like(g)], [np.zeros(len(SHARES))]
        self.slopes.append(g)
        self.values.append(values)
        if len(self.slopes) > 1 + self.size:
            del self.slopes[1], self.values[1]

    def bound(self, l1: float) -> float:
        """Return a lower bound of the optimum.

        Parameters
        ----------
        l1 : float
            Factor of the L1 norm, positive.

        Returns
        -------
        float
            0 if there are no gradients.
        """
        from scipy.optimize import linprog  # heavy

        if not self.slopes:
            return 0.0
        # Mixtures of slopes that are all within l1 are, too.
        most = np.abs(self.slopes[0])
        for slope in self.slopes[1:]:
            np.maximum(most, np.abs(slope), out=most)
        beyond = np.flatnonzero(most > l1)
        slopes = np.array([slope[beyond] for slope in self.slopes])
        values = np.array(self.values)
        rows = np.zeros(beyond.size, dtype=bool)
        mix = np.zeros(len(slopes))
        mix[-1] = 1.0
        best, kept = 0.0, None
        for _ in range(ROUNDS):
            excess = np.abs(mix @ slopes) - l1
            new = np.flatnonzero((excess > 1e-6 * l1) & ~rows)
            if not new.size and best > 0:
                break
            if new.size > MOST_ROWS:
                new = new[np.argpartition(excess[new], -MOST_ROWS)[-MOST_ROWS:]]
            rows[new] = True
            some = np.kron(slopes[:, rows].T, SHARES) / l1
            table = np.vstack([np.ones((1, values.size)), some, -some])
            answer = linprog(-values.ravel(), table, np.ones(len(table)), method="highs")
            if answer.x is None:
                break
            shares = np.maximum(answer.x, 0)
            mix = shares.reshape(values.shape) @ SHARES
            slope = mix @ slopes
            top = float(np.abs(slope).max(initial=0))
            scale = 1 / max(1.0, top / l1, float(shares.sum()))
            value = scale * float(shares @ values.ravel())
            if value > best:
                best, kept = value, scale * mix
        if kept is not None:
            mixed = kept[0] * self.slopes[0]
            for share, slope in zip(kept[1:], self.slopes[1:]):
                mixed += share * slope
            self.slopes[0], self.values[0] = mixed, best * SHARES
        return best

    def nbytes(self) -> int:
        """Return the bytes held.

        Returns
        -------
        int
        """
        return sum(slope.nbytes for slope in self.slopes)


def mixed_entropies(entropies: np.ndarray, losses: np.ndarray) -> np.ndarray:
    """Return the entropies of distributions mixed with the true label.

    Parameters
    ----------
    entropies : ndarray of shape (n,)
        Entropies of the distributions p.
    losses : ndarray of shape (n,)
        ``-log p(truth)``.

    Returns
    -------
    ndarray of shape (len(SHARES), n)
        Entropies of ``(1 - t) truth + t p`` for each t of SHARES.
    """
    t = SHARES[:, None]
    losses = np.clip(losses, 0, 1e4)  # beyond, the true label's probability is 0
    others = -np.expm1(-losses)  # the probability of all labels but the truth
    spread = np.maximum(entropies - losses * np.exp(-losses), 0)  # their term of the entropy
    kept = 1 - t * others
    safe = np.where(kept > 0, kept, 1.0)
    return t * spread - t * np.log(t) * others - safe * np.log(safe)
