"""Build of the wrong operators."""

from Cython.Build import cythonize
from setuptools import setup

import structsolve

setup(
    ext_modules=cythonize(
        "structsolve_wrong/_operators.pyx", include_path=[structsolve.get_include()]
    )
)
