"""Print the lowest versions of what pyproject.toml needs, as pip's requirements."""

import re
from pathlib import Path

text = (Path(__file__).parent.parent / "pyproject.toml").read_text(encoding="utf-8")
needs = re.search(r"^dependencies = \[(.*?)^\]", text, re.DOTALL | re.MULTILINE)
for name, version in re.findall(r'"([\w-]+)>=([\d.]+)"', needs[1]):
    # "1.26" allows 1.26.0, which "==1.26" asks for.
    print(f"{name}=={version}")
