# build: glue
"""Calls of Python functions by XLA, over the memory of its arrays: nothing is copied."""

import os
import traceback
import weakref

cimport numpy as cnp
from cpython.exc cimport PyErr_SetInterrupt
from cpython.pycapsule cimport PyCapsule_New
from libc.stdint cimport int64_t


cnp.import_array()

cdef extern from "xla.h":
    enum:
        XLA_METADATA, XLA_SCALAR, XLA_INT64, XLA_INVALID_ARGUMENT, XLA_INTERNAL

    ctypedef struct xla_extension:
        int type

    ctypedef struct xla_version:
        int major, minor

    ctypedef struct xla_metadata:
        xla_version version

    ctypedef struct xla_metadata_extension:
        xla_metadata* metadata

    ctypedef struct xla_error:
        size_t struct_size
        xla_extension* extensions
        const char* message
        int code

    ctypedef struct xla_api:
        xla_version version
        void* (*create_error)(xla_error*)

    ctypedef struct xla_buffer:
        int dtype
        void* data
        int64_t rank
        int64_t* dims

    ctypedef struct xla_buffers:
        int64_t size
        xla_buffer** buffers

    ctypedef struct xla_scalar:
        int dtype
        void* value

    ctypedef struct xla_attributes:
        int64_t size
        int* types
        xla_scalar** scalars

    ctypedef struct xla_frame:
        xla_extension* extensions
        const xla_api* api
        xla_buffers arguments, results
        xla_attributes attributes

    int xla_numpy_type(int dtype)


# Functions by number.  What XLA compiled for one keeps it alive; a number of another process, as
# a program that was stored may have, is none of these.
cdef dict functions = {}
cdef int64_t made = int.from_bytes(os.urandom(7), "little")
cdef int minor = 0


def number_of(function):
    """Return the number by which :func:`handler` knows a function; it does not keep it alive.

    Parameters
    ----------
    function : callable
        Takes a list of arrays for results and one of arguments, views of XLA's memory that end
        with the call.

    Returns
    -------
    int
    """
    global made
    made += 1
    functions[made] = weakref.ref(function, lambda _, number=made: functions.pop(number, None))
    return made


def handler(int version):
    """Return the handler that XLA calls.

    Parameters
    ----------
    version : int
        The minor version of XLA's interface 0.x, all of which have what is read here.

    Returns
    -------
    PyCapsule
    """
    global minor
    minor = version
    return PyCapsule_New(<void*>handle, "xla._CUSTOM_CALL_TARGET", NULL)


cdef void* handle(xla_frame* frame) noexcept with gil:
    cdef xla_metadata_extension* asked = <xla_metadata_extension*>frame.extensions
    if asked != NULL and frame.extensions.type == XLA_METADATA:
        asked.metadata.version.major, asked.metadata.version.minor = 0, minor
        return NULL
    cdef bytes text = b"an error that could not be told"
    cdef int code = XLA_INTERNAL
    cdef bint interrupted = False
    try:
        try:
            run(frame)
            return NULL
        except (TypeError, ValueError) as error:
            text = f"{type(error).__name__}: {error}".encode("utf-8", "replace")
            code = XLA_INVALID_ARGUMENT
        except BaseException as error:
            interrupted = isinstance(error, KeyboardInterrupt)
            text = traceback.format_exc().encode("utf-8", "replace")
    except BaseException:  # of the message
        pass
    if interrupted:
        PyErr_SetInterrupt()  # XLA makes an error of its own of ours: Ctrl-C must not be lost
    return failure(frame, text, code)


cdef void* failure(xla_frame* frame, const char* message, int code) noexcept:
    cdef xla_error error
    error.struct_size, error.extensions = sizeof(xla_error), NULL
    error.message, error.code = message, code
    return frame.api.create_error(&error)


cdef int run(xla_frame* frame) except -1:
    cdef xla_attributes* given = &frame.attributes
    if (given.size != 1 or given.types[0] != XLA_SCALAR
            or given.scalars[0].dtype != XLA_INT64):
        raise TypeError("XLA handed on something else than the number of a function")
    kept = functions.get((<int64_t*>given.scalars[0].value)[0])
    function = None if kept is None else kept()
    if function is None:
        raise ValueError(
            "this program was compiled in another process, which had the structure's functions; "
            "compile it in this one"
        )
    function(arrays(&frame.results, True), arrays(&frame.arguments, False))
    return 0


cdef list arrays(xla_buffers* given, bint written):
    cdef list answer = []
    cdef cnp.npy_intp sizes[32]
    cdef xla_buffer* one
    cdef int64_t k, j
    cdef int kind
    cdef cnp.ndarray array
    for k in range(given.size):
        one = given.buffers[k]
        kind = xla_numpy_type(one.dtype)
        if kind < 0 or one.rank > 32:
            raise TypeError(
                f"argument {k}: XLA's type {one.dtype} in {one.rank} axes, expected numbers of 8 "
                "to 64 bits in at most 32"
            )
        for j in range(one.rank):
            sizes[j] = one.dims[j]
        array = cnp.PyArray_SimpleNewFromData(<int>one.rank, sizes, kind, one.data)
        if not written:
            cnp.PyArray_CLEARFLAGS(array, cnp.NPY_ARRAY_WRITEABLE)
        answer.append(array)
    return answer
