"""Build of the compiled search."""

from Cython.Build import cythonize
from setuptools import setup

import structsolve

setup(
    packages=["structsolve_golden"],
    ext_modules=cythonize(
        "structsolve_golden/_golden.pyx", include_path=[structsolve.get_include()]
    ),
)
