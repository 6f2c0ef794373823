"""Build of the compiled loops; everything else is in pyproject.toml."""

import os
import re
import shutil
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

PACKAGE_DIR = {"structsolve": "structsolve", "structsolve.plugins": "plugins"}

DEBUG = bool(os.environ.get("STRUCTSOLVE_DEBUG"))  # bounds checks in every loop
OPTIMIZE = os.environ.get("STRUCTSOLVE_OPTIMIZE", "-O1" if DEBUG else "-O3")
SANITIZE = os.environ.get("STRUCTSOLVE_SANITIZE")  # for example "address"

# Cython's own code for memoryviews, compiled once instead of into every module.
SHARED = "structsolve._cyutility"

# First line of a module that calls others, from Python or for it, or computes a few numbers a call:
# at -O1 half the time to compile, and nothing to be seen of it at run time.
GLUE = "# build: glue\n"

# A module that takes longer than its size tells: vector code for every width.
LONG = {"structsolve.plugins.permutation._assignment"}

DIRECTIVES = {
    "language_level": 3,
    "boundscheck": DEBUG,
    "wraparound": False,
    "initializedcheck": DEBUG,
    "cdivision": True,
    "freethreading_compatible": True,
    # Operators live as long as a fit; what users hold and copy (structsolve/search) asks for it.
    "auto_pickle": False,
    # Less to compile: a second per four modules is half a minute of the whole build.
    "emit_code_comments": DEBUG,
    "optimize.unpack_method_calls": False,
}

# Integers from Python by its own functions: no loop converts any, every module held the code.
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"), ("CYTHON_USE_PYLONG_INTERNALS", "0")]


def compile_args(glue: bool) -> list[str]:
    if sys.platform == "win32":
        return ["/O2"]
    optimize = "-O1" if glue and OPTIMIZE == "-O3" else OPTIMIZE
    args = [optimize, "-g" if DEBUG or SANITIZE else "-g0"]
    # One rounding per operation wherever the code says so: results are the same everywhere.
    args += ["-fno-math-errno", "-ffp-contract=off", "-Wno-unused-function"]
    return args + ([f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer"] if SANITIZE else [])


def extensions() -> list[Extension]:
    found = [
        Extension(SHARED, ["structsolve/_cyutility.c"], extra_compile_args=compile_args(glue=True))
    ]
    for root, folder in PACKAGE_DIR.items():
        for path in sorted(Path(folder).rglob("*.pyx")):
            module = ".".join([root, *path.relative_to(folder).with_suffix("").parts])
            found.append(
                Extension(
                    module,
                    [path.as_posix()],
                    include_dirs=[".", path.parent.as_posix(), numpy.get_include()],
                    define_macros=MACROS,
                    depends=[
                        p.as_posix()
                        for folder in (Path("structsolve/simd"), path.parent)
                        for p in folder.glob("*.h")
                    ],
                    extra_compile_args=compile_args(path.read_text("utf-8").startswith(GLUE)),
                    extra_link_args=[f"-fsanitize={SANITIZE}"] if SANITIZE else [],
                )
            )
    return found


def stage_pxd() -> str:
    """Lay all .pxd files out as one package structsolve, where Cython looks for them.

    Cython does not know package_dir: without this a plugin's modules cannot cimport each other.
    Files that are there already keep their time, so that nothing is compiled again for nothing.
    """
    stage = Path("build/pxd")
    for root, folder in PACKAGE_DIR.items():
        for path in Path(folder).rglob("*.pxd"):
            target = stage.joinpath(*root.split("."), path.relative_to(folder))
            target.parent.mkdir(parents=True, exist_ok=True)
            if not target.exists() or target.read_bytes() != path.read_bytes():
                shutil.copyfile(path, target)
    # A folder without a .pxd of its own is a package to Cython by an empty one.
    for folder in [stage / "structsolve", *(p for p in stage.rglob("*") if p.is_dir())]:
        (folder / "__init__.pxd").touch()
    return str(stage)


def has_inline(source: str) -> bool:
    """Tell C with inline functions of our own from C whose only ones are Cython's."""
    text = Path(source).read_text("utf-8")
    return re.search(r"^static CYTHON_INLINE [^\n]*\b__pyx_f_", text, re.M) is not None


def translated(found: list[Extension]) -> list[Extension]:
    """Return the extensions as C; as they are where nothing is to be compiled."""
    if {"sdist", "egg_info", "dist_info"} & set(sys.argv[1:]):
        return found
    made = cythonize(
        found,
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        build_dir="build/cython",
        include_path=[stage_pxd()],
        nthreads=0 if sys.platform == "win32" else (os.cpu_count() or 1),
    )
    for extension in made:
        # Copies of Cython's functions for Python's objects at every call of them: an eighth of the
        # time to compile.  The word is the same for ours, which the loops are made of.
        if not has_inline(extension.sources[0]):
            extension.define_macros = [*extension.define_macros, ("CYTHON_INLINE", "")]
    # The longest first, so that all cores end together.
    return sorted(made, key=lambda e: (e.name not in LONG, -os.path.getsize(e.sources[0])))


PACKAGES = [
    name
    for root, folder in PACKAGE_DIR.items()
    for name in (root, *(f"{root}.{sub}" for sub in find_packages(folder)))
]

setup(
    packages=PACKAGES,
    package_dir=PACKAGE_DIR,
    package_data={"": ["*.pxd", "*.pyx", "*.h", "*.pyi", "py.typed"]},
    exclude_package_data={"": ["*.c"]},
    ext_modules=translated(extensions()),
    # One compiler per core: pip gives no flag for it.
    options={"build_ext": {"parallel": os.cpu_count() or 1}},
    zip_safe=False,
)
