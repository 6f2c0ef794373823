"""Build of the compiled loops; everything else is in pyproject.toml."""

import gc
import hashlib
import json
import os
import re
import runpy
import sys
from pathlib import Path

import numpy
from Cython.Build import cythonize
from setuptools import Extension, find_packages, setup

PACKAGE_DIR = {"structsolve": "structsolve", "structsolve.plugins": "plugins"}

DEBUG = bool(os.environ.get("STRUCTSOLVE_DEBUG"))  # bounds checks in every loop
COVERAGE = bool(os.environ.get("STRUCTSOLVE_COVERAGE"))  # lines are traced: many times slower
OPTIMIZE = os.environ.get("STRUCTSOLVE_OPTIMIZE", "-O1" if DEBUG or COVERAGE else "-O3")
SANITIZE = os.environ.get("STRUCTSOLVE_SANITIZE")  # for example "address"

# Cython's own code for memoryviews, compiled once instead of into every module.
SHARED = "structsolve._cyutility"

# First line of a module that calls others, from Python or for it, or computes a few numbers a call:
# at -O1 half the time to compile, and nothing to be seen of it at run time.
GLUE = "# build: glue\n"

# What Cython writes after a module's own functions runs at its import, or handles Python's objects:
# at -O1, too, a fifth of the time to compile the others.  Not these, which gain little or whose
# loops are over Python's objects.
WHOLE = {
    "structsolve.examples.stacking",
    "structsolve.features._numbering",
    "structsolve.plugins.dependency._features",
}
AFTER = "\nstatic CYTHON_SMALL_CODE int __Pyx_Init"
LESS = """
#if defined(__OPTIMIZE__) && defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize ("O1")
#endif"""

# Modules that take longer than their size tells: vector code for every width.
LONG = {"structsolve.plugins.permutation._jonker_volgenant"}

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
    "emit_code_comments": DEBUG or COVERAGE,  # by which lines of C are found again
    "linetrace": COVERAGE,
    "optimize.unpack_method_calls": False,
}

# Python's own functions convert integers: no loop does, and every module held that code.
MACROS = [("NPY_NO_DEPRECATED_API", "NPY_1_7_API_VERSION"), ("CYTHON_USE_PYLONG_INTERNALS", "0")]
MACROS += [("CYTHON_TRACE_NOGIL", "1")] if COVERAGE else []


def compile_args(glue: bool) -> list[str]:
    if sys.platform == "win32":
        return ["/O2"]
    optimize = "-O1" if glue and OPTIMIZE == "-O3" else OPTIMIZE
    args = [optimize, "-g" if DEBUG or SANITIZE else "-g0"]
    # One rounding per operation wherever the code says so: results are the same everywhere.
    args += ["-fno-math-errno", "-ffp-contract=off"]
    # Looking for what to warn of, mostly in Cython's code, is a tenth of the time to compile.
    args.append("-Wno-unused-function" if DEBUG or SANITIZE else "-w")
    return args + ([f"-fsanitize={SANITIZE}", "-fno-omit-frame-pointer"] if SANITIZE else [])


def extensions() -> list[Extension]:
    modules = [
        Extension(SHARED, ["structsolve/_cyutility.c"], extra_compile_args=compile_args(glue=True))
    ]
    for root, folder in PACKAGE_DIR.items():
        for path in sorted(Path(folder).rglob("*.pyx")):
            module = ".".join([root, *path.relative_to(folder).with_suffix("").parts])
            modules.append(
                Extension(
                    module,
                    [path.as_posix()],
                    include_dirs=[".", path.parent.as_posix(), numpy.get_include()],
                    define_macros=MACROS,
                    depends=[
                        p.as_posix()
                        for folder in (Path("structsolve/simd"), Path(*path.parts[:2]))
                        for p in folder.rglob("*.h")
                    ],
                    extra_compile_args=compile_args(path.read_text("utf-8").startswith(GLUE)),
                    extra_link_args=[f"-fsanitize={SANITIZE}"] if SANITIZE else [],
                )
            )
    return modules


def stage_pxd() -> str:
    """Lay all .pxd files out as one package structsolve, where Cython looks for them.

    Cython does not know package_dir: without this a plugin's modules cannot cimport each other.
    Files that are there already keep their time, so that nothing is compiled again for nothing.
    """
    stage, wanted = Path("build/pxd"), {}
    for root, folder in PACKAGE_DIR.items():
        for path in Path(folder).rglob("*.pxd"):
            place = Path(*root.split("."), path.relative_to(folder))
            wanted[stage / place] = path.read_bytes()
            # A folder without __init__.pxd is a package to Cython by an empty one.
            for package in list(place.parents)[:-1]:
                wanted.setdefault(stage / package / "__init__.pxd", b"")
    for stale in set(stage.rglob("*.pxd")) - set(wanted):  # a copy would hide that a module moved
        stale.unlink()
    for target, content in wanted.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists() or target.read_bytes() != content:
            target.write_bytes(content)
    return str(stage)


def record_sources() -> None:
    """Note what the sources held that are translated and compiled: a checkout changes their times.

    Tests that build a wheel take over modules whose sources are still the same.
    """
    digests = {}
    for folder in PACKAGE_DIR.values():
        for path in sorted(Path(folder).rglob("*")):
            if path.suffix in (".pyx", ".pxd", ".h"):
                digests[path.as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    digests["setup.py"] = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()
    record = Path("build/cython/sources.json")
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(digests, indent=0), "utf-8")


def remove_stale() -> None:
    """Remove modules built in place whose .pyx is gone: they would hide the module that moved.

    Takes only names as this build gives them, for whatever Python, such as ``x.cpython-311-*.so``.
    """
    for folder in PACKAGE_DIR.values():
        for path in sorted(Path(folder).rglob("*")):
            module = re.fullmatch(r"(\w+)\.(cpython-3\d+|cp3\d+)[\w-]*\.(so|pyd)", path.name)
            if not module or SHARED.endswith(f".{module[1]}"):
                continue
            if not path.with_name(f"{module[1]}.pyx").exists():
                print(f"removing {path}, which has no {module[1]}.pyx")
                path.unlink()


def has_inline(text: str) -> bool:
    """Tell C with inline functions of our own from C whose only ones are Cython's."""
    return re.search(r"^static CYTHON_INLINE [^\n]*\b__pyx_f_", text, re.M) is not None


def translated(modules: list[Extension]) -> list[Extension]:
    """Return the extensions as C; as they are where nothing is to be compiled."""
    if {"sdist", "egg_info", "dist_info"} & set(sys.argv[1:]):
        return modules
    if {"editable_wheel", "develop", "--inplace", "-i"} & set(sys.argv[1:]):
        remove_stale()
    runpy.run_path(str(Path(__file__).with_name(".ci") / "stubs.py"))["write_stubs"](PACKAGE_DIR)
    # Cython's trees are garbage by the module: looking for it as usual takes half its time.
    gc.set_threshold(1_000_000, 5, 5)
    made = cythonize(
        modules,
        compiler_directives=DIRECTIVES,
        shared_utility_qualified_name=SHARED,
        build_dir=None if COVERAGE else "build/cython",  # Cython.Coverage looks beside the .pyx
        include_path=[stage_pxd()],
        nthreads=0 if sys.platform == "win32" else (os.cpu_count() or 1),
    )
    record_sources()
    for extension in made:
        source = Path(extension.sources[0])
        text = source.read_text("utf-8")
        if extension.name not in WHOLE and AFTER in text and LESS not in text:
            source.write_text(text.replace(AFTER, LESS + AFTER, 1), "utf-8")
        # Copies of Cython's functions for Python's objects at every call of them: an eighth of the
        # time to compile.  The word is the same for ours, which the loops are made of.
        if not has_inline(text):
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
