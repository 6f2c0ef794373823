"""Very many classes as a plugin: ExtremeSVM, its solvers, rivals, reader and commands.

``estimator`` holds the settings, ``training`` fits by one of ``solvers``, ``prediction`` scans the
weights, ``checks`` and ``label_sets`` read X and y, ``reader`` files, ``commands`` is the shell's.
"""

from typing import TYPE_CHECKING

from structsolve.hookspecs import Lazy, Named, hookimpl
from structsolve.utils.lazy import lazy_names

if TYPE_CHECKING:
    from structsolve.plugins.extreme.estimator import ExtremeSVM
    from structsolve.plugins.extreme.reader import read_extreme, read_svmlight_chunks

__all__ = ["ExtremeSVM", "read_extreme", "read_svmlight_chunks"]
__getattr__ = lazy_names(
    __name__,
    {"ExtremeSVM": "estimator", "read_extreme": "reader", "read_svmlight_chunks": "reader"},
)


@hookimpl
def structsolve_estimators():
    home = Lazy("structsolve.plugins.extreme.estimator:ExtremeSVM")
    return [Named("ExtremeSVM", home, "very many classes")]


@hookimpl
def structsolve_readers():
    home = Lazy("structsolve.plugins.extreme.reader:ExtremeReader")
    return [Named("extreme", home, "svmlight, or the extreme classification repository's text")]


@hookimpl
def structsolve_rival_indexes():
    solvers = "structsolve.plugins.extreme.solvers"
    homes = {
        "exact": ("rivals:ExactRivals", "the best rivals, by a scan"),
        "certified": ("rivals:CertifiedRivals", "certified:EPSILON, a scan that misses no more"),
        "random": ("rivals:RandomRivals", "random:K, the best of K uniform draws"),
        "lsh": ("lsh:LSHRivals", "lsh:BITS,CANDIDATES, by SimpleLSH"),
        "graph": ("graph:GraphRivals", "graph:NEIGHBORS,WALK, a small-world graph by nmslib"),
    }
    return [Named(name, Lazy(f"{solvers}.{home}"), text) for name, (home, text) in homes.items()]
