"""docs/choosing.rst has a line for everything that can be chosen by name."""

import re
import runpy

import pytest
from doc_code import ROOT

from structsolve import list_plugins

PAGE = ROOT / "docs" / "choosing.rst"

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="installed without the checkout")


@pytest.mark.parametrize("kind", ["structures", "surrogates", "solvers"])
def test_every_name_has_a_line(kind):
    text = PAGE.read_text("utf-8")
    shipped = [p for p in list_plugins() if p["distribution"] == "structsolve-learn"]
    names = {name for plugin in shipped for name in plugin[kind]}
    assert names and {name for name in names if f'``"{name}"``' not in text} == set()


def test_the_chart_has_names_of_the_page():
    pytest.importorskip("matplotlib")
    chart = runpy.run_path(str(ROOT / "docs" / "pictures" / "choosing.py"))
    answers = [name for _, rows in chart["QUESTIONS"].values() for _, name in rows]
    names = {word for name in answers for word in re.findall(r"[\w-]+", name)}
    text = PAGE.read_text("utf-8")
    assert len(names) > 25 and {name for name in names if name not in text} == set()
    drawn = {each.get_text() for each in chart["draw"]().axes[0].texts}
    assert set(answers) <= drawn
