"""Numbers for named features: one look-up per occurrence, in a cache-friendly table.

A Python dict reads memory at four places per look-up, this table at two.  The hashes of an item are
computed before its first look-up, so the memory can be prefetched.  A name with a text is found by
both parts: their common string is made only for a new feature.
"""

from collections.abc import Iterable, Mapping
from numbers import Number

import numpy as np

from cpython.list cimport PyList_GET_ITEM
from cpython.object cimport PyObject
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy
from libc.stdlib cimport calloc, free, malloc, realloc
from structsolve.utils.allocate cimport allocated
cimport numpy as cnp

cnp.import_array()

cdef extern from "Python.h":
    int PyUnicode_Check(object)
    int PyUnicode_CheckExact(object)
    int PyFloat_CheckExact(object)
    double PyFloat_AS_DOUBLE(object)
    Py_ssize_t PyUnicode_GET_LENGTH(object)
    int PyUnicode_KIND(object)
    void* PyUnicode_DATA(object)
    unsigned int PyUnicode_READ(int, void*, Py_ssize_t)
    int PyDict_Next(object, Py_ssize_t*, PyObject**, PyObject**)
    int PyLong_CheckExact(object)
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1

cdef extern from "structsolve/simd/prefetch.h" nogil:
    void SS_PREFETCH(const void* address)

cdef struct Slot:
    PyObject* name      # owned by the table; NULL: empty
    int32_t number
    uint32_t hash

cdef enum:
    UNKNOWN = -1                # the feature is not in the vocabulary
    LONGEST = 64                # maximum number of an item's features for insertion sort

cdef Py_ssize_t AHEAD = 32      # number of features hashed before the first look-up


def show(value):
    """Return the text of a value for a message.

    Parameters
    ----------
    value : object

    Returns
    -------
    str
        At most 60 characters, followed by the type.
    """
    text = repr(value)
    return f"{text if len(text) <= 60 else text[:57] + '...'} ({type(value).__name__})"


cdef class Names:
    """A table of the distinct features: their names and numbers.

    Parameters
    ----------
    vocabulary : dict of str to int, optional
        Fixed numbers of the known features; others are ignored.
    separator : str, default="="
        Stands between the name and the text of a feature with a text.

    Attributes
    ----------
    names : list of str
        In the order of their first occurrence, with their texts.
    """

    cdef readonly list names
    cdef readonly str separator
    cdef bint closed
    cdef Slot* slots
    cdef Py_ssize_t mask, n

    def __cinit__(self, dict vocabulary=None, str separator="="):
        self.names, self.separator = [], separator
        self.mask = (1 << 12) - 1
        while vocabulary is not None and 2 * len(vocabulary) > self.mask:
            self.mask = 2 * self.mask + 1
        self.slots = <Slot*>allocated(calloc(self.mask + 1, sizeof(Slot)), b"names")
        if vocabulary is None:
            return
        for name, number in vocabulary.items():
            if PyUnicode_Check(name):
                self._insert(name, _hash(name), number)
        self.closed = True

    def __dealloc__(self):
        free(self.slots)

    cdef uint64_t hash(self, name, text) noexcept:
        cdef uint64_t hash = _hash(name)
        return hash if text is None else _followed(_followed(hash, self.separator), text)

    cdef int32_t number(self, name, text, uint64_t hash) except -2:
        """Return the number of a feature: a new one, or UNKNOWN, if it is not in the table."""
        cdef Py_ssize_t place = _place(hash) & self.mask
        cdef Slot* slot = &self.slots[place]
        while slot.name != NULL:
            if slot.hash == <uint32_t>hash and _spells(<object>slot.name, name, self.separator,
                                                       text):
                return slot.number
            place = (place + 1) & self.mask
            slot = &self.slots[place]
        if self.closed:
            return UNKNOWN
        if self.n == 2147483647:
            raise ValueError("X: found 2^31 different features; use a FeatureHasher")
        return self._insert(name if text is None else f"{name}{self.separator}{text}", hash, self.n)

    cdef int32_t _insert(self, name, uint64_t hash, int32_t number) except -2:
        cdef Py_ssize_t place = _place(hash) & self.mask
        while self.slots[place].name != NULL:
            place = (place + 1) & self.mask
        self.names.append(name)
        self.slots[place] = Slot(<PyObject*>name, number, <uint32_t>hash)
        self.n += 1
        if 2 * self.n > self.mask:
            self._grow()
        return number

    cdef int _grow(self) except -1:
        cdef Py_ssize_t old = self.mask + 1, k, place
        cdef Slot* slots = self.slots
        cdef Slot* grown = <Slot*>allocated(calloc(4 * old, sizeof(Slot)), b"names")
        self.slots, self.mask = grown, 4 * old - 1
        for k in range(old):
            if slots[k].name != NULL:
                place = _place(_hash(<object>slots[k].name)) & self.mask
                while grown[place].name != NULL:
                    place = (place + 1) & self.mask
                grown[place] = slots[k]
        free(slots)
        return 0


cdef class Numbering:
    """The numbers of all occurrences of features, item after item.

    Parameters
    ----------
    table : Names
        The features and their numbers.

    Attributes
    ----------
    items : int
        Number of items.
    offsets : list of int
        First item of each sequence, and the end.
    """

    cdef Names table
    # Occurrences: features and values; values is NULL if all are 1.
    cdef int32_t* ids
    cdef double* values
    cdef int64_t* item_ends
    cdef Py_ssize_t n, room, item_room
    cdef readonly Py_ssize_t items
    cdef readonly list offsets

    def __cinit__(self, Names table not None):
        self.table, self.offsets = table, [0]

    def __dealloc__(self):
        free(self.ids)
        free(self.values)
        free(self.item_ends)

    def occurrences(self):
        """Return the occurrences.

        Returns
        -------
        ids : ndarray of int32
        values : ndarray of float64
        """
        cdef cnp.npy_intp n = self.n
        cdef cnp.ndarray ids = cnp.PyArray_EMPTY(1, &n, cnp.NPY_INT32, 0)
        cdef cnp.ndarray values = cnp.PyArray_EMPTY(1, &n, cnp.NPY_DOUBLE, 0)
        cdef double* value = <double*>values.data
        cdef Py_ssize_t k
        if n and self.values != NULL:
            memcpy(value, self.values, n * sizeof(double))
        if n:
            memcpy(ids.data, self.ids, n * sizeof(int32_t))
        if self.values == NULL:
            for k in range(n):
                value[k] = 1
        return ids, values

    def starts(self):
        """Return the first occurrence of each item, and the end.

        Returns
        -------
        ndarray of int64 of shape (items + 1,)
        """
        starts = np.zeros(self.items + 1, np.int64)
        cdef int64_t[::1] view = starts
        cdef Py_ssize_t r
        for r in range(self.items + 1):
            view[r] = self._start(r)
        return starts

    def end_sequence(self):
        """End a sequence after the last item."""
        self.offsets.append(self.items)

    def blocks(self):
        """Return the rows of the items of each sequence as arrays of a CSR matrix.

        Returns
        -------
        list of tuple of (ndarray, ndarray of int32, ndarray of int32)
            Values and columns, which are views of those of all items, and the starts of the rows.
        """
        cdef Py_ssize_t s, r, first, last, a, b
        cdef cnp.npy_intp size
        cdef list made = [], offsets = self.offsets
        cdef cnp.ndarray starts
        ids, values = self.occurrences()
        for s in range(len(offsets) - 1):
            first, last = offsets[s], offsets[s + 1]
            if not 0 <= first <= last <= self.items:
                raise ValueError(f"offsets {first} and {last}: expected up to {self.items} items")
            a = self._start(first)
            b = self._start(last)
            if b - a > 2147483647:
                raise ValueError(f"X[{s}]: found {b - a} features, expected fewer than 2^31")
            size = last - first + 1
            starts = cnp.PyArray_EMPTY(1, &size, cnp.NPY_INT32, 0)
            for r in range(first, last + 1):
                (<int32_t*>starts.data)[r - first] = <int32_t>(self._start(r) - a)
            made.append((values[a:b], ids[a:b], starts))
        return made

    cdef inline Py_ssize_t _start(self, Py_ssize_t item) noexcept:
        return self.item_ends[item - 1] if item > 0 else 0

    def renumber(self, const int32_t[::1] numbers not None):
        """Renumber all occurrences; drop those with negative numbers.

        Parameters
        ----------
        numbers : ndarray of int32 of shape (features,)
            New numbers of 0, 1, ...
        """
        cdef Py_ssize_t k = 0, r, last = 0, left = 0
        for k in range(self.n):
            if not 0 <= self.ids[k] < numbers.shape[0]:
                raise ValueError(f"numbers: found {numbers.shape[0]}, expected one per feature")
        for r in range(self.items):
            for k in range(last, self.item_ends[r]):
                if numbers[self.ids[k]] < 0:
                    continue
                self.ids[left] = numbers[self.ids[k]]
                if self.values != NULL:
                    self.values[left] = self.values[k]
                left += 1
            last = self.item_ends[r]
            self.item_ends[r] = left
        self.n = left

    def sort_items(self):
        """Sort the occurrences of each item by number, and add up equal numbers.

        Insertion sort, for items of few features.

        Returns
        -------
        bool
            False if nothing was changed because an item has too many features.
        """
        cdef Py_ssize_t r, k, j, place, first, last = 0, left = 0
        cdef int32_t number
        cdef double value = 1
        for r in range(self.items):
            if self._start(r + 1) - self._start(r) > LONGEST:
                return False
        for r in range(self.items):
            first = left
            for k in range(last, self.item_ends[r]):
                number = self.ids[k]
                place = left
                while place > first and self.ids[place - 1] > number:
                    place -= 1
                if place > first and self.ids[place - 1] == number:
                    self._values()
                    self.values[place - 1] += self.values[k]
                    continue
                if self.values != NULL:
                    value = self.values[k]
                for j in range(left, place, -1):
                    self.ids[j] = self.ids[j - 1]
                    if self.values != NULL:
                        self.values[j] = self.values[j - 1]
                self.ids[place] = number
                if self.values != NULL:
                    self.values[place] = value
                left += 1
            last = self.item_ends[r]
            self.item_ends[r] = left
        self.n = left
        return True

    cdef int _values(self) except -1:
        """Ensure that each occurrence has a value."""
        cdef Py_ssize_t k
        if self.values == NULL:
            self.values = <double*>allocated(malloc(self.room * sizeof(double)), b"values")
            for k in range(self.n):
                self.values[k] = 1
        return 0

    def add_items(self, items, Py_ssize_t i, Py_ssize_t t=0):
        """Add the features of all items of a sequence.

        Parameters
        ----------
        items : iterable of dicts, or of iterables of str or of pairs
        i : int
            Number of the sequence, for messages.
        t : int, default=0
            Position of the first item, for messages.
        """
        for item in items:
            if type(item) is list:
                self._add_list(item, i, t)
            elif type(item) is dict:
                self._add_dict(item, i, t)
            elif isinstance(item, Mapping):
                self._add_dict(dict(item), i, t)
            elif isinstance(item, (str, bytes)) or not isinstance(item, Iterable):
                raise TypeError(
                    f"X[{i}][{t}]: found {show(item)}; expected a dict or a list of strings"
                )
            else:
                self._add_list(list(item), i, t)
            self._end_item()
            t += 1

    cdef int _end_item(self) except -1:
        cdef Py_ssize_t room
        if self.items == self.item_room:
            room = max(64, self.item_room + self.item_room // 2)
            self.item_ends = <int64_t*>allocated(
                realloc(self.item_ends, room * sizeof(int64_t)), b"items")
            self.item_room = room
        self.item_ends[self.items] = self.n
        self.items += 1
        return 0

    cdef int _add_list(self, list item, Py_ssize_t i, Py_ssize_t t) except -1:
        cdef Py_ssize_t k, first = 0, last, n = len(item)
        cdef uint64_t hashes[32]
        cdef Names table = self.table
        while first < n:
            last = min(n, first + AHEAD)
            for k in range(first, last):
                feature = <object>PyList_GET_ITEM(item, k)
                if PyUnicode_Check(feature):
                    hashes[k - first] = _hash(feature)
                    SS_PREFETCH(&table.slots[_place(hashes[k - first]) & table.mask])
            for k in range(first, last):
                feature = <object>PyList_GET_ITEM(item, k)
                if PyUnicode_Check(feature):
                    self._append(table.number(feature, None, hashes[k - first]), 1.0)
                elif isinstance(feature, tuple) and len(feature) == 2:
                    self._add_pair(feature[0], feature[1], feature, i, t)
                elif isinstance(feature, bytes):
                    self._add_one(_text(feature, i, t), None, 1.0)
                else:
                    raise _refused(feature, i, t)
            first = last
        return 0

    cdef int _add_dict(self, dict item, Py_ssize_t i, Py_ssize_t t) except -1:
        # Values first, hashes next, look-ups last: memory is prefetched for the next step.
        cdef PyObject* names[32]
        cdef PyObject* given[32]
        cdef PyObject* name
        cdef PyObject* value
        cdef Py_ssize_t place = 0, n = 0, size = len(item)
        while PyDict_Next(item, &place, &name, &value):
            names[n], given[n] = name, value
            SS_PREFETCH(value)
            n += 1
            if n == AHEAD:
                self._add_pairs(n, names, given, i, t)
                n = 0
                if len(item) != size:  # by a value's own code
                    raise RuntimeError(f"X[{i}][{t}]: the dict changed while it was read")
        return self._add_pairs(n, names, given, i, t)

    cdef int _add_pairs(self, Py_ssize_t n, PyObject** names, PyObject** given, Py_ssize_t i,
                        Py_ssize_t t) except -1:
        cdef PyObject* texts[32]        # NULL: a number
        cdef uint64_t hashes[32]
        cdef double values[32]
        cdef Py_ssize_t k = 0
        cdef int beyond
        cdef Names table = self.table
        while k < n:
            name, value = <object>names[k], <object>given[k]
            if not PyUnicode_CheckExact(name):
                break
            hashes[k], texts[k], values[k] = _hash(name), NULL, 1
            if PyUnicode_CheckExact(value):
                texts[k] = given[k]
                hashes[k] = _followed(_followed(hashes[k], table.separator), value)
            elif value is True or value is False:
                values[k] = value is True
            elif PyFloat_CheckExact(value):
                values[k] = PyFloat_AS_DOUBLE(value)
            elif PyLong_CheckExact(value):
                values[k] = <double>PyLong_AsLongLongAndOverflow(value, &beyond)
                if beyond:
                    break
            else:
                break
            SS_PREFETCH(&table.slots[_place(hashes[k]) & table.mask])
            k += 1
        # Code of others, such as __float__, may drop what the dict holds.
        others = [(<object>names[j], <object>given[j]) for j in range(k, n)] if k < n else ()
        self._add_known(k, names, texts, hashes, values)
        for name, value in others:
            self._add_pair(name, value, None, i, t)
        return 0

    cdef int _add_known(self, Py_ssize_t n, PyObject** names, PyObject** texts, uint64_t* hashes,
                        double* values) except -1:
        cdef Py_ssize_t k
        for k in range(n):
            text = None if texts[k] == NULL else <object>texts[k]
            self._append(self.table.number(<object>names[k], text, hashes[k]), values[k])
        return 0

    cdef int _add_one(self, name, text, double value) except -1:
        return self._append(self.table.number(name, text, self.table.hash(name, text)), value)

    cdef int _add_pair(self, name, value, given, Py_ssize_t i, Py_ssize_t t) except -1:
        # given: for messages, the feature that contains this one, or None.
        feature = (name, value) if given is None else given
        name, value = _text(name, i, t), _text(value, i, t)
        if not PyUnicode_Check(name):
            raise _refused(feature, i, t)
        if PyUnicode_Check(value):
            return self._add_one(name, value, 1.0)
        if value is True or value is False or PyFloat_CheckExact(value):
            return self._add_one(name, None, value)
        if isinstance(value, (float, int, Number, np.bool_)):
            try:
                weight = float(value)
            except (TypeError, OverflowError):  # a complex number, one beyond 1e308
                raise _refused(feature, i, t) from None
            self._add_one(name, None, weight)
        elif isinstance(value, Mapping):
            for inner, what in value.items():
                inner = _text(inner, i, t)
                if not PyUnicode_Check(inner):
                    raise _refused(feature, i, t)
                self._add_pair(f"{name}:{inner}", what, feature, i, t)
        elif isinstance(value, Iterable) and not isinstance(value, bytearray):
            self._add_many(name, value, feature, i, t)
        else:
            raise _refused(feature, i, t)
        return 0

    cdef int _add_many(self, name, value, feature, Py_ssize_t i, Py_ssize_t t) except -1:
        """Add one feature per text of a list, or per entry of a vector."""
        ordered = isinstance(value, (list, tuple)) or getattr(value, "ndim", 0) == 1
        cdef list parts = list(value)
        if all(isinstance(part, (str, bytes)) for part in parts):
            for part in parts:
                self._add_pair(name, part, feature, i, t)
        elif ordered and all(isinstance(part, (Number, np.bool_)) for part in parts):
            for place, part in enumerate(parts):
                self._add_pair(f"{name}[{place}]", part, feature, i, t)
        else:
            raise _refused(feature, i, t)
        return 0

    cdef int _append(self, int32_t number, double value) except -1:
        cdef Py_ssize_t room
        if number == UNKNOWN:
            return 0
        if self.n == self.room:
            room = max(1024, self.room + self.room // 2)
            self.ids = <int32_t*>allocated(realloc(self.ids, room * sizeof(int32_t)), b"numbers")
            if self.values != NULL:
                self.values = <double*>allocated(
                    realloc(self.values, room * sizeof(double)), b"values")
            self.room = room
        if value != 1:
            self._values()
        self.ids[self.n] = number
        if self.values != NULL:
            self.values[self.n] = value
        self.n += 1
        return 0


# Polynomials in a random number: the hash of a joined string follows from those of its parts.
cdef uint64_t BASE = <uint64_t>hash("structsolve") | 1
cdef uint64_t BASE2 = BASE * BASE
cdef uint64_t BASE3 = BASE2 * BASE
cdef uint64_t BASE4 = BASE2 * BASE2


cdef inline uint64_t _hash(text) noexcept:
    return _followed(0, text)


cdef inline Py_ssize_t _place(uint64_t hash) noexcept:
    # The low bits of a polynomial depend only on the low bits of the characters.
    return <Py_ssize_t>((hash ^ (hash >> 32)) * <uint64_t>0x9E3779B97F4A7C15ULL >> 32)


cdef inline uint64_t _followed(uint64_t hash, text) noexcept:
    """Return the hash of a string with a known hash and the text after it."""
    cdef Py_ssize_t k = 0, size = PyUnicode_GET_LENGTH(text)
    cdef int kind = PyUnicode_KIND(text)
    cdef void* data = PyUnicode_DATA(text)
    cdef const unsigned char* s = <const unsigned char*>data
    if kind == 1:
        while k + 4 <= size:
            hash = hash * BASE4 + (s[k] * BASE3 + s[k + 1] * BASE2 + (s[k + 2] * BASE + s[k + 3]))
            k += 4
        while k < size:
            hash = hash * BASE + s[k]
            k += 1
        return hash
    for k in range(size):
        hash = hash * BASE + PyUnicode_READ(kind, data, k)
    return hash


cdef inline bint _spells(whole, name, separator, text) noexcept:
    """Return whether a string is the name, or the name, the separator and the text."""
    cdef Py_ssize_t size, middle
    if whole is name and text is None:
        return True
    size = PyUnicode_GET_LENGTH(name)
    if text is None:
        return PyUnicode_GET_LENGTH(whole) == size and _has(whole, 0, name)
    middle = size + PyUnicode_GET_LENGTH(separator)
    return (PyUnicode_GET_LENGTH(whole) == middle + PyUnicode_GET_LENGTH(text)
            and _has(whole, 0, name) and _has(whole, size, separator)
            and _has(whole, middle, text))


cdef inline bint _has(whole, Py_ssize_t start, part) noexcept:
    cdef Py_ssize_t k, size = PyUnicode_GET_LENGTH(part)
    cdef int kind = PyUnicode_KIND(part), wide = PyUnicode_KIND(whole)
    cdef void* data = PyUnicode_DATA(whole)
    if kind == wide:
        return memcmp(<char*>data + start * kind, PyUnicode_DATA(part), size * kind) == 0
    for k in range(size):
        if PyUnicode_READ(wide, data, start + k) != PyUnicode_READ(kind, PyUnicode_DATA(part), k):
            return False
    return True


cdef _text(given, Py_ssize_t i, Py_ssize_t t):
    """Bytes as text, and anything else unchanged."""
    if not isinstance(given, bytes):
        return given
    try:
        return given.decode()
    except UnicodeDecodeError as error:
        raise ValueError(f"X[{i}][{t}]: found {show(given)}, expected UTF-8 ({error})") from None


cdef _refused(feature, Py_ssize_t i, Py_ssize_t t):
    return ValueError(
        f"X[{i}][{t}]: found the feature {show(feature)}; expected a string, or a name (string) "
        "with a number, a string, a list of strings, a vector of numbers or a dict of these"
    )
