"""Works and files: what is cited is there, and every work of the bibliography is cited."""

import re

import pytest
from doc_code import ROOT

DOCS = ROOT / "docs"

pytestmark = pytest.mark.skipif(not DOCS.exists(), reason="installed without the checkout")

# The first authors of the five works that the library puts into practice.
FOUNDATIONS = {"Choi2018", "Belyy2018", "Goh2017", "Franc2020", "NowakVila2020"}
PAGES = [*DOCS.glob("*.rst"), *DOCS.glob("theory/*.rst")] if DOCS.exists() else []


def citations(pages):
    texts = (page.read_text("utf-8") for page in pages)
    return {key for text in texts for key in re.findall(r"\[([A-Z]\w+)\]_", text)}


def test_works_are_cited_and_citations_are_works():
    works = re.findall(r"^\.\. \[(\w+)\] ", (DOCS / "bibliography.rst").read_text("utf-8"), re.M)
    assert len(works) == len(set(works)) and set(works) > FOUNDATIONS
    assert set(works) == citations(PAGES)


@pytest.mark.parametrize("page", sorted(DOCS.glob("theory/*.rst")), ids=lambda page: page.stem)
def test_pages_of_theory_cite_name_a_class_and_are_in_the_index(page):
    text = page.read_text("utf-8")
    assert citations([page])
    assert re.search(r":class:`~structsolve\.", text) or page.stem == "overview"
    for word in ("onsistent", "ertificate", "ost"):  # consistency, certificate, cost
        assert word in text, word
    assert f"theory/{page.stem}\n" in (DOCS / "index.rst").read_text("utf-8")


def test_theory_cites_all_five_foundations():
    assert citations(DOCS.glob("theory/*.rst")) >= FOUNDATIONS


def test_paths_that_pages_name_are_in_the_repository():
    pages = [*PAGES, *ROOT.glob("*.md"), ROOT / "benchmarks" / "README.md"]
    folders = "docs|benchmarks|tests|structsolve|plugins"
    path = re.compile(rf"(?<![\w./-])((?:{folders})/[\w/-]+\.[a-z]+)\b")
    named = {name for page in pages for name in path.findall(page.read_text("utf-8"))}
    assert len(named) > 50
    assert {name for name in named if not (ROOT / name).exists()} == set()
