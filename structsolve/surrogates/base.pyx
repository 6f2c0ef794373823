# build: glue
"""The surrogate interface: one example's scores in, one cut out."""


cdef class Surrogate(Operator):
    """Turns part scores and true label of example i into a cut ``(p, b)`` and an upper bound.

    ``H_i(w) >= b - <theta_i(w), p>`` holds for every w, with equality for the given scores when
    ``exact``.  A surrogate uses no weights or features.  Truths are arguments: it holds no
    labels.

    Parameters
    ----------
    layout : PartLayout
        Sizes of the examples.

    Attributes
    ----------
    max_entries : int
        Largest number of entries of a cut.
    exact : bool
        Every search is exact: the bound is the cut's value.
    affine : bool
        ``H_i`` is the largest of finitely many cuts (or of their mixtures): BCFW has a dual.
    convex : bool
        Every cut lies below ``H_i`` everywhere: cutting planes have a lower bound.
    """

    def __cinit__(self, *args, **kwargs):
        self.affine = self.convex = True

    def counts(self):
        """Return the numbers of searches and of their oracle calls so far.

        Returns
        -------
        tuple of int, or None
            None if every search is one call.
        """
        return None

    def allow(self, double gap):
        """Allow the bound of a cut to exceed its value by this gap from now on.

        Cuts and bounds stay valid for any gap.  The base class ignores it.

        Parameters
        ----------
        gap : float
            0 for the usual accuracy.
        """

    def shortfalls(self):
        """Return the excess of known labels' scores over the oracle's bounds.

        Returns
        -------
        ndarray of float64 of shape (n,), or None
            For every example the largest so far, beyond rounding; None if scores are not compared.
        """
        return None

    def memory_of_examples(self):
        """Return the memory of each example's last search, for checkpoints.

        Returns
        -------
        dict of str to ndarray
        """
        return {}

    def remember(self, arrays):
        """Restore the result of ``memory_of_examples``.

        Parameters
        ----------
        arrays : mapping of str to ndarray
        """

    cdef int cut(self, Py_ssize_t i, const double* theta, const int* truth, Cut* cut,
                 char* work) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__qualname__} does not implement cut()")

    cdef int simplex(self, Py_ssize_t i, const int* truth, double* b,
                     int* truth_index) except -1 nogil:
        with gil:
            raise NotImplementedError(f"{type(self).__qualname__} does not implement simplex()")
