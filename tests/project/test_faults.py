"""The faults of .ci/faults fit the current code: each has its place, and changes it."""

import json

import pytest
from doc_code import ROOT

FAULTS = ROOT / ".ci" / "faults.json"

pytestmark = pytest.mark.skipif(not FAULTS.exists(), reason="installed without the checkout")


def test_every_fault_has_one_place():
    faults = json.loads(FAULTS.read_text(encoding="utf-8"))
    assert len({fault["id"] for fault in faults}) == len(faults) > 200
    for fault in faults:
        text = (ROOT / fault["file"]).read_text(encoding="utf-8")
        assert text.count("\n".join(fault["old"])) == 1, fault["id"]
        assert fault["old"] != fault["new"], fault["id"]
