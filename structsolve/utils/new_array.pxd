# New NumPy arrays, and views of one, without the time of a call of NumPy in Python.
cimport numpy as cnp
from cpython.ref cimport Py_INCREF, PyTypeObject

cdef extern from "numpy/arrayobject.h":
    object PyArray_NewFromDescr(PyTypeObject* subtype, cnp.dtype descr, int ndim,
                                cnp.npy_intp* shape, cnp.npy_intp* strides, void* data, int flags,
                                object like)


# As PyArray_NewFromDescr; the caller keeps its reference to the dtype.
cdef inline object new_array(cnp.dtype descr, int ndim, cnp.npy_intp* shape,
                             cnp.npy_intp* strides, void* data, int flags):
    Py_INCREF(descr)
    return PyArray_NewFromDescr(
        <PyTypeObject*>cnp.ndarray, descr, ndim, shape, strides, data, flags, None)


# An array over memory of `flat`, which it keeps.
cdef inline object view_of(cnp.ndarray flat, int ndim, cnp.npy_intp* shape,
                           cnp.npy_intp* strides, void* data, int flags):
    view = new_array(<cnp.dtype>cnp.PyArray_DESCR(flat), ndim, shape, strides, data, flags)
    Py_INCREF(flat)     # the view's reference; set_array_base is slower
    cnp.PyArray_SetBaseObject(<cnp.ndarray>view, flat)
    return view
