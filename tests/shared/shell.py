"""The shell as tests call it, and a plugin that reads tables."""

import json
import re

from structsolve.cli.main import main
from structsolve.io.reader import Reader


def fails(capsys, *argv, match=""):
    """Run, expect one matching line on stderr and exit status 2, and return that line."""
    status = main([str(arg) for arg in argv])
    err = capsys.readouterr().err
    assert status == 2
    lines = [line for line in err.splitlines() if not line.startswith("structsolve: warning")]
    assert len(lines) == 1, err
    assert lines[0].startswith("structsolve: error: ") and re.search(match, lines[0]), err
    return lines[0]


def works(capsys, *argv):
    status = main([str(arg) for arg in argv])
    out, err = capsys.readouterr()
    assert status == 0, err
    return out


def run(capsys, folder, file, *options):
    """Fit on a file; return what predict prints, and score as JSON."""
    model = folder / "m.structsolve"
    out = works(capsys, "fit", folder / file, "--model", model, *options)
    assert out.splitlines()[-1].split() == ["saved", str(model)]
    lines = works(capsys, "predict", model, folder / file).splitlines()
    return lines, json.loads(works(capsys, "score", model, folder / file, "--json")), model


class TableReader(Reader):
    """A line of JSON for each sequence: features by name, and labels."""

    endings = (".table.txt",)

    def __init__(self, names=None):
        self.names = names

    def fit(self, path):
        with open(path, encoding="utf-8") as file:
            rows = [json.loads(line)["x"] for line in file]
        self.names = sorted({name for row in rows for word in row for name in word})
        return self.read(path)

    def read(self, path):
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        for number, line in enumerate(lines, 1):
            if "x" not in line:
                raise ValueError(f"{path}, line {number}: found no x; expected features")
        X = [[[word.get(name, 0.0) for name in self.names] for word in line["x"]] for line in lines]
        return X, [line["y"] for line in lines] if "y" in lines[0] else None


def shell(capsys, *argv):
    status = main([str(arg) for arg in argv])
    return status, *capsys.readouterr()
