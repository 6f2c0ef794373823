"""The docs' networks at a tiny size, on generated data."""

import re
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs the extra [torch]")
pytest.importorskip("matplotlib", reason="the examples draw their curves")

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def examples(monkeypatch):
    """Return the scripts as modules, without the folder of real data."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    monkeypatch.delenv("STRUCTSOLVE_DATA", raising=False)
    before = torch.get_num_threads()
    yield __import__
    torch.set_num_threads(before)
    for name in ("neural_parser", "neural_ocr", "neural_training"):
        sys.modules.pop(name, None)


def figures(text):
    """Return test figures of the table, by surrogate."""
    rows = re.findall(r"\| network \| (\w+) \| [\d.]+ \([^)]*\) \| ([\d.]+) \(", text)
    return {name: float(value) for name, value in rows}


def test_parser(examples, capsys, tmp_path):
    picture = tmp_path / "curves.png"
    sizes = ["--seeds", "0", "--epochs", "2", "1", "--nodes", "20", "--hidden", "16"]
    rates = ["--rates", ".01", ".005"]
    examples("neural_parser").main([*sizes, *rates, "--picture", str(picture)])
    right = figures(capsys.readouterr().out)
    assert set(right) == {"margin", "ProbLoss", "CRF"}
    assert min(right.values()) > 90  # adjectives belong to the noun, the noun to the verb
    assert picture.stat().st_size > 1000


def test_letters(examples, capsys):
    sizes = ["--seeds", "0", "--epochs", "5", "1", "--nodes", "20", "--rates", ".003", ".002"]
    examples("neural_ocr").main(sizes)
    text = capsys.readouterr().out
    assert set(figures(text)) == {"margin", "ProbLoss", "CRF"}
    assert max(figures(text).values()) < 60  # chance would be 90
    assert "CRF, points more right than the margin" in text


def test_batches_have_one_length_and_every_example_once(examples):
    training = examples("neural_training")
    rng = np.random.default_rng(0)
    given = [(np.full(n, i), np.arange(n)) for i, n in enumerate(rng.integers(1, 5, 40))]
    groups = training.by_length(given)
    for order in (None, np.random.default_rng(1)):
        numbers = []
        for inputs, labels in training.batches(groups, 10, order):
            assert inputs.shape == labels.shape
            assert labels.numel() < 10 + labels.shape[1]
            numbers += inputs[:, 0].tolist()
        assert sorted(numbers) == list(range(40))
