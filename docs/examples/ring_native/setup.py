"""Build of the compiled operators."""

from Cython.Build import cythonize
from setuptools import Extension, setup

import structsolve

setup(
    packages=["ring_native"],
    ext_modules=cythonize(
        [
            Extension(
                "ring_native._operators",
                ["ring_native/_operators.pyx"],
                include_dirs=[structsolve.get_include()],  # the vector loops' header
            )
        ],
        include_path=[structsolve.get_include()],
        language_level=3,
    ),
)
