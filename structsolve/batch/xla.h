/* What we use of the memory that XLA hands to a function of its foreign function interface.

   The layout of API 0.x, by jaxlib's xla/ffi/api/c_api.h: fields are only ever added behind. */
#ifndef STRUCTSOLVE_XLA_H
#define STRUCTSOLVE_XLA_H

#include <stddef.h>
#include <stdint.h>

enum { XLA_METADATA = 1, XLA_SCALAR = 3, XLA_INT64 = 5 };
enum { XLA_INVALID_ARGUMENT = 3, XLA_INTERNAL = 13 };

typedef struct xla_extension {
    size_t struct_size;
    int type;
    struct xla_extension *next;
} xla_extension;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    int major, minor;
} xla_version;

typedef struct {
    size_t struct_size;
    xla_version version;
    uint32_t traits;
} xla_metadata;

typedef struct {
    xla_extension base;
    xla_metadata *metadata;
} xla_metadata_extension;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    const char *message;
    int code;
} xla_error;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    xla_version version;
    const void *internal;
    void *(*create_error)(xla_error *);
} xla_api;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    int dtype;
    void *data;
    int64_t rank;
    int64_t *dims;
} xla_buffer;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    int64_t size;
    int *types;
    xla_buffer **buffers;
} xla_buffers;

typedef struct {
    int dtype;
    void *value;
} xla_scalar;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    int64_t size;
    int *types;
    void **names;
    xla_scalar **scalars;
} xla_attributes;

typedef struct {
    size_t struct_size;
    xla_extension *extensions;
    const xla_api *api;
    void *context;
    int stage;
    xla_buffers arguments, results;
    xla_attributes attributes;
} xla_frame;

/* XLA's names of types, as those of NumPy; -1 for others. */
static int xla_numpy_type(int dtype) {
    static const signed char types[] = {-1, NPY_BOOL, NPY_INT8, NPY_INT16, NPY_INT32, NPY_INT64,
        NPY_UINT8, NPY_UINT16, NPY_UINT32, NPY_UINT64, -1, NPY_FLOAT, NPY_DOUBLE};
    return dtype < 0 || dtype > 12 ? -1 : types[dtype];
}

#endif
