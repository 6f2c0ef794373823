"""When do many machines pay?  A simulation of rounds from measured constants.

Time to a gap of 1 % of consensus ADMM and of one-slack cutting planes over shards, against one
machine with the same cores per worker, for sizes up to 1024 workers and 1e8 words (OCR letters'
cost per word, C = .02).  Constants: seconds per word and pass from one core of the machine of
`benchmarks/results`, rounds from `benchmarks/shards.py` (simulated shards), a network of 10
Gbit/s.  Workers add the vectors of four shards, then those of four such groups, and so on.
"""

from __future__ import annotations

import numpy as np

WORDS = 6251
PASS = 67e-3 / WORDS  # oracle pass and its cheap ones, per word
CUT = 19e-3 / WORDS  # a pass at fixed weights
LATENCY, PER_TASK = 20e-3, 1e-3  # of a round; the scheduler's time per task
BANDWIDTH = 1.25e9
# Rounds to 1 %: measured up to 64 shards, then extrapolated by the last slope.
SHARDS, ROUNDS = (1, 4, 16, 64), (7, 7, 13, 33)
ONE_SLACK = 110
GROUP = 4


def rounds(shards: int) -> float:
    """Rounds of ADMM to 1 %."""
    if shards <= SHARDS[-1]:
        return float(np.interp(np.log(shards), np.log(SHARDS), ROUNDS))
    slope = np.log(ROUNDS[-1] / ROUNDS[-2]) / np.log(SHARDS[-1] / SHARDS[-2])
    return ROUNDS[-1] * (shards / SHARDS[-1]) ** slope


def communication(shards: int, weights: float) -> float:
    """Communication seconds of a round: one vector to each shard and one back, in a tree."""
    size, levels, width = 8 * weights, 0, shards
    received = 0.0
    while width > 1:
        group = min(width, GROUP)
        received += group * size / BANDWIDTH
        width = -(-width // GROUP) if width > GROUP else 1
        levels += 1
    # Workers pass z on to each other: each holder makes one copy at a time.
    sent = np.ceil(np.log2(shards + 1)) * size / BANDWIDTH
    return received + sent + LATENCY * max(levels, 1) + PER_TASK * shards


def main() -> None:
    print("weights    words   shards   ADMM s  speed-up   one-slack s  speed-up")
    for weights in (1e5, 1e6, 1e7):
        for words in (1e5, 1e6, 1e8):
            alone = rounds(1) * words * PASS
            for shards in (4, 16, 64, 256, 1024):
                wire = communication(shards, weights)
                # Certificates: two candidates, every third round.
                admm = rounds(shards) * (words * (PASS + 2 / 3 * CUT) / shards + 4 / 3 * wire)
                cuts = ONE_SLACK * (words * CUT / shards + wire)
                print(
                    f"{weights:7.0e} {words:8.0e} {shards:8d} {admm:8.1f} {alone / admm:8.1f}x "
                    f"{cuts:12.1f} {alone / cuts:8.1f}x"
                )


if __name__ == "__main__":
    main()
