"""Build of the compiled oracle."""

from Cython.Build import cythonize
from setuptools import setup

import structsolve

setup(
    ext_modules=cythonize(
        "structsolve_fastchain/_oracle.pyx", include_path=[structsolve.get_include()]
    )
)
