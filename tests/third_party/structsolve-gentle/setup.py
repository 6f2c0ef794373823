"""Build of the compiled psi."""

from Cython.Build import cythonize
from setuptools import setup

import structsolve

setup(
    ext_modules=cythonize("structsolve_gentle/_psi.pyx", include_path=[structsolve.get_include()])
)
