"""Handwritten words with scores from a network: convolutions over each letter, a chain over them.

Reads the OCR letters from the folder STRUCTSOLVE_DATA, or generates strips of digits.  Fold 0 is
for testing, as in `benchmarks/accuracy_ocr.py`, fold 1 for development, the others for training.

    STRUCTSOLVE_DATA=... python docs/examples/neural_ocr.py --picture curves.png
"""

import os
from pathlib import Path

import numpy as np
import torch
from neural_training import by_length, draw, experiment, options, report
from torch import nn

from structsolve import make_strips

#: Of `benchmarks/accuracy_ocr.py`, chosen on fold 1, trained on nine folds.
LINEAR = [("margin", "", "11.39")]


def words(most):
    """Parts with pictures and labels of words, and the number of classes."""
    folder = os.environ.get("STRUCTSOLVE_DATA")
    if folder is None:
        strips = zip(("train", "dev", "test"), (*make_strips(80, 20), make_strips(1, 20, 1)[1]))
        return {
            part: [
                (np.asarray(x, dtype=np.float32), np.asarray(y, dtype=np.int64))
                for x, y in zip(made.images, made.labels, strict=True)
            ]
            for part, made in strips
        }, 10
    with np.load(Path(folder, "ocr-letters", "letters.npz"), allow_pickle=False) as file:
        pixels = np.unpackbits(file["X"], axis=1).reshape(-1, 16, 8).astype(np.float32)
        letters, offsets, folds = file["y"].astype(np.int64), file["offsets"], file["fold"]
    parts = {"train": [], "dev": [], "test": []}
    for fold, a, b in zip(folds, offsets[:-1], offsets[1:], strict=True):
        part = {0: "test", 1: "dev"}.get(int(fold), "train")
        if most is None or len(parts[part]) < most:
            parts[part].append((pixels[a:b], letters[a:b]))
    return parts, 26


class Reader(nn.Module):
    """Scores of letters, of shape (words, length, classes), and tables that all words share."""

    def __init__(self, height, width, classes, dropout=0.3):
        super().__init__()
        self.letter = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Dropout(dropout),
            nn.Linear(32 * (height // 4) * (width // 4), 128), nn.ReLU(), nn.Dropout(dropout),
            nn.Linear(128, classes),
        )  # fmt: skip
        self.transition = nn.Parameter(torch.zeros(classes, classes))
        self.start = nn.Parameter(torch.zeros(classes))
        self.end = nn.Parameter(torch.zeros(classes))

    def forward(self, pictures):
        n, length, height, width = pictures.shape
        node = self.letter(pictures.reshape(-1, 1, height, width)).reshape(n, length, -1)
        return {
            "node": node, "transition": self.transition, "start": self.start, "end": self.end
        }  # fmt: skip


def main(argv=None):
    title = "Handwritten words with scores from a network: OCR letters, error"
    parser = options(title, epochs=[6, 4], rates=[2e-3, 1e-3], nodes=300)
    args = parser.parse_args(argv)
    parts, classes = words(args.most)
    data = {part: by_length(examples) for part, examples in parts.items()}
    height, width = parts["train"][0][0].shape[1:]
    print(", ".join(f"{part}: {len(of)} words" for part, of in parts.items()), "\n")
    measures = {"error": 1}
    told = experiment(lambda: Reader(height, width, classes), "chain", data, measures, args)
    report(told, measures, LINEAR, error=True)
    if args.picture:
        draw(told, args.picture, "letters wrong, %", error=True)


if __name__ == "__main__":
    main()
