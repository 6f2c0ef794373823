"""Tell whether files that say where scores lie have changed since AddressSanitizer saw them.

    python .ci/layouts.py    # prints their digest; layouts_checked holds that of the last run

``.ci/checked address`` renews layouts_checked where the tests of layouts have passed.
"""

import hashlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = [
    f"{name}.{ending}"
    for name in ("plugins/mrf/_shape", "plugins/mrf/_model", "structsolve/part_layout")
    for ending in ("pyx", "pxd")
]


def digest() -> str:
    """Return the digest of these files."""
    text = b"".join((ROOT / name).read_bytes() for name in FILES)
    return hashlib.sha256(text).hexdigest()


if __name__ == "__main__":
    print(digest())
