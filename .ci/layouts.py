"""Tell whether files that say where scores lie have changed since AddressSanitizer saw them.

    python .ci/layouts.py    # prints their digest; layouts_checked holds that of the last run

``.ci/checked address`` renews layouts_checked where the tests of layouts have passed.
"""

import hashlib
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FILES = [
    "plugins/mrf/tables/_model.pxd",
    "plugins/mrf/tables/_shape.pxd",
    "plugins/mrf/tables/_shape.pyx",
    "structsolve/part_layout.pxd",
    "structsolve/part_layout.pyx",
]
# Docstrings, comments and spaces may change.
IDLE = re.compile(r'"""[\s\S]*?"""|#[^\n]*|\s+')


def digest() -> str:
    """Return the digest of what these files say."""
    text = "".join(IDLE.sub("", (ROOT / name).read_text(encoding="utf-8")) for name in FILES)
    return hashlib.sha256(text.encode()).hexdigest()


if __name__ == "__main__":
    print(digest())
