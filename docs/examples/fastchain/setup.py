"""Build of the compiled oracle."""

from Cython.Build import cythonize
from setuptools import Extension, setup

import structsolve

setup(
    ext_modules=cythonize(
        [
            Extension(
                "structsolve_fastchain._oracle",
                ["structsolve_fastchain/_oracle.pyx"],
                include_dirs=[structsolve.get_include()],  # the vector loops' header
            )
        ],
        include_path=[structsolve.get_include()],
        language_level=3,
    )
)
