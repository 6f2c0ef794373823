"""Parses many lines ``label,label column:value column:value ...`` into arrays in one call.

Scikit-learn's parser makes Python numbers of every pair.  It takes five times as long, one
microsecond per pair, and its errors name no line.
"""

from libc.math cimport isfinite, rint
from libc.stdint cimport int32_t, int64_t, uint64_t

import numpy as np

cdef enum:
    LABEL = 1
    PAIR = 2
    TOO_LOW = 3
    TOO_HIGH = 4
    NO_FLOAT = 5

#: Faults of a field, by the number that `parse` returns.
LABEL_FAULT, PAIR_FAULT, LOW_FAULT, HIGH_FAULT, FLOAT_FAULT = LABEL, PAIR, TOO_LOW, TOO_HIGH, NO_FLOAT

cdef double[23] POWERS
for _power in range(23):
    POWERS[_power] = float(10**_power)  # exact up to 10^22

# Integers up to here, and so labels, are exact in float64.
cdef double EXACT = 2.0**53


# Larger than any column; further digits are ignored.
cdef int64_t FAR = 10**15


cdef struct Place:
    Py_ssize_t line  # counted from 0
    Py_ssize_t start
    Py_ssize_t stop
    int fault


# Bound on rounding errors of the mantissa, its last digits and the power of ten.
cdef double SLACK = 4e-16


cdef double slow_number(const char* text, Py_ssize_t start, Py_ssize_t stop) except? -1 with gil:
    """Read a number with too many digits or too large an exponent for a single rounding."""
    return float(text[start:stop])


cdef inline bint is_space(char c) noexcept nogil:
    return c == b" " or c == b"\t" or c == b"\r" or c == b"\v" or c == b"\f"


cdef inline bint is_digit(char c) noexcept nogil:
    return b"0" <= c <= b"9"


cdef inline int digit(char c) noexcept nogil:
    return c - 48


cdef inline bint ends_field(char c) noexcept nogil:
    return is_space(c) or c == b"\n" or c == b"#"


cdef Py_ssize_t read_number(
    const char* text, Py_ssize_t p, double* value, bint* exact
) except -1 nogil:
    """Read a decimal number; return its end, or `p` if there is none.

    `text` ends with a character that no number contains.  `exact` tells whether `value` is the
    nearest float64; if not, its relative error is below SLACK.
    """
    cdef Py_ssize_t start = p, end
    cdef uint64_t mantissa = 0
    cdef int digits = 0, point
    cdef int64_t exponent = 0, power = 0
    cdef bint minus = text[p] == b"-", down, empty = True, cut = False
    if minus or text[p] == b"+":
        p += 1
    for point in range(2):
        while is_digit(text[p]):
            empty = False
            if digits < 18:
                mantissa = mantissa * 10 + digit(text[p])
                digits += mantissa != 0
                exponent -= point
            else:
                exponent += not point
                cut = True
            p += 1
        if point or text[p] != b".":
            break
        p += 1
    if empty:
        return start
    if text[p] == b"e" or text[p] == b"E":
        end = p + 1
        down = text[end] == b"-"
        if down or text[end] == b"+":
            end += 1
        if is_digit(text[end]):
            while is_digit(text[end]):
                if power < 100000:
                    power = power * 10 + digit(text[end])
                end += 1
            exponent += -power if down else power
            p = end
    if exponent > 22 or exponent < -22:
        exact[0] = True
        value[0] = slow_number(text, start, p)
        return p
    exact[0] = not cut and mantissa <= <uint64_t>EXACT
    if exponent < 0:
        value[0] = <double>mantissa / POWERS[-exponent]
    else:
        value[0] = <double>mantissa * POWERS[exponent]
    if minus:
        value[0] = -value[0]
    return p


cdef Py_ssize_t read_pair(
    const char* text, Py_ssize_t p, int64_t least, int64_t n_columns, int64_t* column,
    float* value, int* fault
) except -1 nogil:
    """Read ``column:value``; return its end, with or without a fault."""
    cdef Py_ssize_t start = p
    cdef int64_t number = 0
    cdef double wide = 0
    cdef bint exact = True
    fault[0] = 0
    while is_digit(text[p]):
        if number < FAR:
            number = number * 10 + digit(text[p])
        p += 1
    if p == start or text[p] != b":":
        fault[0] = PAIR
        return p
    column[0] = number - least
    start = p + 1
    p = read_number(text, start, &wide, &exact)
    if not exact and <float>(wide * (1 - SLACK)) != <float>(wide * (1 + SLACK)):
        wide = slow_number(text, start, p)
    if p == start or not ends_field(text[p]):
        fault[0] = PAIR
    elif number < least:
        fault[0] = TOO_LOW
    elif number - least >= n_columns:
        fault[0] = TOO_HIGH
    value[0] = <float>wide
    if fault[0] == 0 and not isfinite(value[0]):
        fault[0] = NO_FLOAT
    return p


cdef Py_ssize_t field_end(const char* text, Py_ssize_t p) noexcept nogil:
    while not ends_field(text[p]):
        p += 1
    return p


cdef bint has_labels(const char* text, Py_ssize_t p) noexcept nogil:
    """Return whether the field at this position is not a pair."""
    while is_digit(text[p]):
        p += 1
    return text[p] != b":"


def parse(bytes text not None, int64_t least, int64_t n_columns, int64_t n_labels, bint blank_rows):
    """Parse whole lines.

    Parameters
    ----------
    text : bytes
        Ends with a line feed.
    least : int
        The number of the first column, 0 or 1.
    n_columns : int
        Maximum number of columns, below 2^31.
    n_labels : int
        Labels must be integers from 0 to below this; -1 allows any.
    blank_rows : bool
        Whether an empty line is a row without labels and values; otherwise it is skipped, like
        comment lines, which begin with ``#``.

    Returns
    -------
    arrays : tuple
        The rows before a fault: ``row_ends`` int64, ``columns`` int32, ``values`` float32,
        ``label_ends`` int64, ``labels`` int64 and ``lines`` int64, counted from 0.
    n_lines : int
        Number of lines read.
    unsorted : bool
        Whether a row has columns that do not increase.
    fault : tuple or None
        The fault's number, its line, and the field's first byte and end.
    """
    if not text.endswith(b"\n"):
        raise ValueError("text: expected a line feed at its end")
    if least not in (0, 1) or not 0 <= n_columns < 2**31:
        raise ValueError(
            f"least is {least}, n_columns {n_columns}: expected 0 or 1, and less than 2**31"
        )
    cdef Py_ssize_t most = text.count(b"\n"), pairs = text.count(b":")
    row_ends = np.empty(most, np.int64)
    lines = np.empty(most, np.int64)
    # One extra, for an invalid pair after the last.
    columns = np.empty(pairs + 1, np.int32)
    values = np.empty(pairs + 1, np.float32)
    label_ends = np.empty(most, np.int64)
    labels = np.empty(most + text.count(b","), np.int64)
    cdef int64_t[::1] rows_ = row_ends, lines_ = lines, label_ends_ = label_ends, labels_ = labels
    cdef int32_t[::1] columns_ = columns
    cdef float[::1] values_ = values
    cdef const char* s = text
    cdef Py_ssize_t p = 0, end = len(text), line = 0, row = 0, pair = 0, label = 0, start
    cdef int64_t column = 0, previous
    cdef double number = 0
    cdef bint unsorted = False, exact = True
    cdef Place place
    place.fault = 0
    with nogil:
        while p < end:
            while is_space(s[p]):
                p += 1
            if s[p] != b"#" and (blank_rows or s[p] != b"\n"):
                if s[p] != b"\n" and has_labels(s, p):
                    start = p
                    while True:
                        p = read_number(s, start, &number, &exact)
                        if p > start and not exact:
                            number = slow_number(s, start, p)
                        if (
                            p == start or not (s[p] == b"," or ends_field(s[p]))
                            or number != rint(number) or not -EXACT <= number <= EXACT
                            or n_labels >= 0 and not 0 <= number < n_labels
                        ):
                            place.fault = LABEL
                            break
                        labels_[label] = <int64_t>number
                        label += 1
                        if s[p] != b",":
                            break
                        start = p + 1
                previous = -1
                while place.fault == 0:
                    while is_space(s[p]):
                        p += 1
                    if s[p] == b"\n" or s[p] == b"#":
                        break
                    start = p
                    p = read_pair(s, p, least, n_columns, &column, &values_[pair], &place.fault)
                    if place.fault:
                        break
                    columns_[pair] = <int32_t>column
                    pair += 1
                    unsorted |= column <= previous
                    previous = column
                if place.fault:
                    place.start, place.stop, place.line = start, field_end(s, start), line
                    break
                rows_[row], lines_[row], label_ends_[row] = pair, line, label
                row += 1
            while s[p] != b"\n":
                p += 1
            p += 1
            line += 1
    arrays = (
        row_ends[:row], columns[:pair], values[:pair], label_ends[:row], labels[:label], lines[:row]
    )
    fault = (place.fault, place.line, place.start, place.stop) if place.fault else None
    return arrays, line, unsorted, fault
