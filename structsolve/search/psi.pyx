# build: glue
# cython: auto_pickle=True
"""psi(h, g): the functions of margin and loss that bi-criteria surrogates maximise.

``h`` is the margin error ``<theta, mu(y) - mu(y_i)>`` of a label, ``g`` its loss (Choi
2018, chapter 3).  Where psi is positive it grows with both and is quasi-concave: its level sets
``{psi >= c}`` are convex.  So an oracle that only maximises ``h + lam g`` suffices to
find the largest value.
"""

from libc.math cimport INFINITY, M_PI, erfc, exp, isinf, log1p, pow, sqrt


cdef class Psi:
    """A function of margin error and loss, called as ``psi(h, g)``.

    Compiled plugins subclass it and override ``value`` and ``partials``; objects in plain Python
    are wrapped by :class:`PythonPsi`.  Subclasses here are :class:`GeneralizedPsi`,
    :class:`BetaPsi`, :class:`LogPsi`, :class:`ProbLossPsi` and :class:`RatioPsi`.

    Attributes
    ----------
    name : str
    affine : bool
        Affine in h.
    convex : bool
        Convex in h.
    product : bool
        It is ``(h + 1) g``.
    """

    cdef double value(self, double h, double g) except? -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__qualname__} does not implement value()")

    cdef int partials(self, double h, double g, double* dh, double* dg) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__qualname__} does not implement partials()")

    cdef void _slot0(self) noexcept nogil: pass
    cdef void _slot1(self) noexcept nogil: pass
    cdef void _slot2(self) noexcept nogil: pass
    cdef void _slot3(self) noexcept nogil: pass

    def __call__(self, double h, double g):
        """Return ``psi(h, g)``.

        Parameters
        ----------
        h, g : float

        Returns
        -------
        float

        Examples
        --------
        >>> from structsolve.search.psi import GeneralizedPsi
        >>> GeneralizedPsi(1, 1)(0.5, 2.0)
        3.0
        """
        return self.value(h, g)

    def slopes(self, double h, double g):
        """Return both partial derivatives of ``psi(h, g)``.

        Parameters
        ----------
        h, g : float

        Returns
        -------
        dh, dg : float
            dg may be infinite if g is 0.
        """
        cdef double dh = 0, dg = 0
        self.partials(h, g, &dh, &dg)
        return dh, dg


cdef inline double _power(double g, double exponent) noexcept nogil:
    # 0 ** 0 = 1: with exponent 0 the loss does not scale the margin, not even the truth's.
    if exponent == 0:
        return 1
    if exponent == 1:
        return g
    if exponent == 0.5:
        return sqrt(g)
    return pow(g, exponent)


cdef class GeneralizedPsi(Psi):
    """``h g^beta + g^alpha``: (1, 0) is margin rescaling, (1, 1) slack rescaling.

    Parameters
    ----------
    alpha, beta : float
        ``alpha > 0``, ``beta >= 0`` and ``0 <= alpha - beta <= 1``, or it is not quasi-concave.
    """

    cdef double alpha, beta

    def __init__(self, double alpha, double beta):
        if not (alpha > 0 and beta >= 0 and 0 <= alpha - beta <= 1):
            raise ValueError(
                f"generalized scaling: alpha={alpha:g}, beta={beta:g}; expected alpha > 0, "
                "beta >= 0 and 0 <= alpha - beta <= 1, where h g^beta + g^alpha is quasi-concave"
            )
        self.name, self.alpha, self.beta = f"generalized:{alpha:g},{beta:g}", alpha, beta
        self.affine = self.convex = True
        self.product = alpha == beta == 1

    cdef double value(self, double h, double g) except? -1 nogil:
        if self.alpha == self.beta:
            return (h + 1) * _power(g, self.beta)
        return h * _power(g, self.beta) + _power(g, self.alpha)

    cdef int partials(self, double h, double g, double* dh, double* dg) except -1 nogil:
        cdef double first
        dh[0] = _power(g, self.beta)
        if self.alpha == self.beta:
            dg[0] = _slope(h + 1, self.beta, g)
            return 0
        first = _slope(h, self.beta, g) if self.beta else 0
        # For g = 0 both may be infinite: the one with the smaller exponent dominates.
        dg[0] = first if isinf(first) else first + _slope(1, self.alpha, g)
        return 0


cdef inline double _slope(double coef, double exponent, double g) noexcept nogil:
    # d/dg of coef g^exponent, which may be infinite.
    if exponent == 1:
        return coef
    if g == 0:
        return 0 if exponent > 1 or coef == 0 else (INFINITY if coef > 0 else -INFINITY)
    return coef * exponent * _power(g, exponent) / g


cdef class BetaPsi(Psi):
    """``h g^beta + g`` with ``0 <= beta <= 1``.

    Parameters
    ----------
    beta : float
    """

    cdef double beta

    def __init__(self, double beta):
        if not 0 <= beta <= 1:
            raise ValueError(f"beta scaling: beta={beta:g}, expected a number from 0 to 1")
        self.name, self.beta = f"beta:{beta:g}", beta
        self.affine = self.convex = True

    cdef double value(self, double h, double g) except? -1 nogil:
        return h * _power(g, self.beta) + g

    cdef int partials(self, double h, double g, double* dh, double* dg) except -1 nogil:
        dh[0] = _power(g, self.beta)
        dg[0] = 1 + (_slope(h, self.beta, g) if self.beta else 0)
        return 0


cdef class LogPsi(Psi):
    """``g log(exp(h) + 1)``; at h = 0 it is 0.69 g, so it is not an upper bound of the loss."""

    def __init__(self):
        self.name, self.convex = "log", True

    cdef double value(self, double h, double g) except? -1 nogil:
        return g * (h + log1p(exp(-h)) if h > 0 else log1p(exp(h)))

    cdef int partials(self, double h, double g, double* dh, double* dg) except -1 nogil:
        dg[0] = h + log1p(exp(-h)) if h > 0 else log1p(exp(h))
        dh[0] = g / (1 + exp(-h)) if h > 0 else g * exp(h) / (1 + exp(h))
        return 0


cdef class ProbLossPsi(Psi):
    """``2 g NormalCDF(h; mean 0, variance 2 g / pi)``, for the Hamming loss.

    Parameters
    ----------
    convex : bool
        For h > 0, use the tangent ``g + sqrt(g) h``; recommended for training.
    """

    def __init__(self, bint convex=True):
        self.name = "probloss" if convex else "probloss:original"
        self.convex = convex

    cdef double value(self, double h, double g) except? -1 nogil:
        if g <= 0:
            return 0
        if self.convex and h > 0:
            return g + sqrt(g) * h
        return g * erfc(-h * sqrt(M_PI / g) / 2)

    cdef int partials(self, double h, double g, double* dh, double* dg) except -1 nogil:
        cdef double u, density
        if g <= 0:
            dh[0], dg[0] = 0, INFINITY
            return 0
        if self.convex and h > 0:
            dh[0] = sqrt(g)
            dg[0] = 1 + h / (2 * dh[0])
            return 0
        u = h * sqrt(M_PI / (2 * g))
        density = exp(-0.5 * u * u) / sqrt(2 * M_PI)
        dh[0] = density * sqrt(2 * M_PI * g)
        dg[0] = erfc(-u / sqrt(2.0)) - density * u
        return 0


cdef class RatioPsi(Psi):
    """``h / (-g)`` with negative g: the micro-F1 surrogate, a ratio of two counts.

    0 at g = 0, where both label sets are empty.
    """

    def __init__(self):
        self.name = "micro-f1"
        self.affine = self.convex = True

    cdef double value(self, double h, double g) except? -1 nogil:
        return h / -g if g < 0 else 0

    cdef int partials(self, double h, double g, double* dh, double* dg) except -1 nogil:
        if g < 0:
            dh[0] = 1 / -g
            dg[0] = h / (g * g)
        else:
            dh[0], dg[0] = 1, 0
        return 0


cdef class PythonPsi(Psi):
    """A psi written in Python.

    Parameters
    ----------
    psi : object
        Has ``value(h, g)`` and ``partials(h, g) -> (dh, dg)``; ``affine`` and ``convex`` declare
        these properties in h (False if missing).
    """

    cdef readonly object psi

    def __init__(self, psi):
        for method in ("value", "partials"):
            if not callable(getattr(psi, method, None)):
                raise TypeError(
                    f"psi is {psi!r}, expected an object with value(h, g) and partials(h, g)"
                )
        self.psi = psi
        self.name = str(getattr(psi, "name", type(psi).__name__))
        self.affine = bool(getattr(psi, "affine", False))
        self.convex = self.affine or bool(getattr(psi, "convex", False))

    cdef object ask(self, str method, double h, double g):
        # Call a method; its exception becomes a ValueError that names the point.
        try:
            return getattr(self.psi, method)(h, g)
        except Exception as error:
            raise ValueError(
                f"psi: {method}(h={h:g}, g={g:g}) raised {type(error).__name__}: {error}"
            ) from error

    cdef double value(self, double h, double g) except? -1 nogil:
        with gil:
            return _number("value", h, g, self.ask("value", h, g))

    cdef int partials(self, double h, double g, double* dh, double* dg) except -1 nogil:
        with gil:
            answer = self.ask("partials", h, g)
            try:
                first, second = answer
            except (TypeError, ValueError):
                raise ValueError(
                    f"psi: partials(h={h:g}, g={g:g}) returned {answer!r}, expected a pair"
                ) from None
            dh[0], dg[0] = _number("partials", h, g, first), _number("partials", h, g, second)
        return 0


cdef double _number(str method, double h, double g, answer) except? -1:
    cdef double value
    try:
        value = float(answer)
    except (TypeError, ValueError):
        value = float("nan")
    if value != value:
        raise ValueError(f"psi: {method}(h={h:g}, g={g:g}) returned {answer!r}, expected numbers")
    return value
