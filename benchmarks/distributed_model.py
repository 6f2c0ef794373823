"""When do many machines pay?  A simulation of rounds from measured constants.

Time to a gap of 1 % of consensus ADMM and of one-slack cutting planes over shards, for up to 1024
workers of one core each and 1e8 words, against BCFW on one core.  Constants: rounds and seconds of
`benchmarks/shards.py` on 64,000 generated sentences at C = .1, of at least 1000 sentences a shard;
a network of 10 Gbit/s.  Workers add the vectors of four shards, then those of four such groups, and
so on.  The last column is the speed-up if vectors and messages took no time.
"""

from __future__ import annotations

import numpy as np
from common import header, table

# BCFW on one core: passes, and seconds per word of each.
PASSES, PASS = 13, 0.99e-6
# Rounds of ADMM: measured from 4 to 64 shards, then extrapolated by the last slope.
SHARDS, ROUNDS = (4, 16, 64), (22, 50, 82)
# Seconds of a round: per word of a shard, certificates included; per weight in each shard, in each
# level of the tree of sums, and between the calls.
WORD, VECTOR, LEVEL, BETWEEN = 0.84e-6, 20e-9, 13e-9, 25e-9
# One-slack: rounds, seconds of each per word of a shard, and per weight for the program.
CUTS, CUT, PROGRAM = 245, 0.34e-6, 530e-9
LATENCY, PER_TASK = 20e-3, 1e-3  # of a round; the scheduler's time per task
BANDWIDTH = 1.25e9
GROUP = 4


def rounds(shards: int) -> float:
    """Rounds of ADMM to 1 %."""
    if shards <= SHARDS[-1]:
        return float(np.interp(np.log(shards), np.log(SHARDS), ROUNDS))
    slope = np.log(ROUNDS[-1] / ROUNDS[-2]) / np.log(SHARDS[-1] / SHARDS[-2])
    return ROUNDS[-1] * (shards / SHARDS[-1]) ** slope


def communication(shards: int, weights: float) -> float:
    """Seconds of a round between workers: a vector to each shard, and the sum of theirs back."""
    size, levels, width = 8 * weights, 0, shards
    received = 0.0
    while width > 1:
        received += min(width, GROUP) * size / BANDWIDTH + LEVEL * weights
        width = -(-width // GROUP) if width > GROUP else 1
        levels += 1
    # Workers pass z on to each other: each holder makes one copy at a time.
    sent = np.ceil(np.log2(shards + 1)) * size / BANDWIDTH
    return received + sent + LATENCY * max(levels, 1) + PER_TASK * shards


def main() -> None:
    header("When many machines pay: simulated from measured constants")
    print(
        f"{1e6 * PASS:.2g} us a word and pass of BCFW, {1e6 * WORD:.2g} of a round and "
        f"{1e9 * (VECTOR + BETWEEN):.2g} ns a weight, {1e3 * LATENCY:g} ms and "
        f"{1e3 * PER_TASK:g} ms a task for a round, 10 Gbit/s; to a gap of 1 % at C = .1\n"
    )
    rows = []
    for weights in (1e5, 1e6, 1e7):
        for words in (1e5, 1e6, 1e8):
            alone = PASSES * words * PASS
            for shards in (4, 16, 64, 256, 1024):
                wire = communication(shards, weights)
                # Certificates: two candidates, every third round.
                vectors = (VECTOR + BETWEEN) * weights + 4 / 3 * wire
                own = WORD * words / shards
                admm = rounds(shards) * (own + vectors)
                cuts = CUTS * (CUT * words / shards + PROGRAM * weights + wire)
                bare = alone / (rounds(shards) * own)
                rows.append([f"{weights:.0e}", f"{words:.0e}", shards, admm, alone / admm])
                rows[-1] += [cuts, alone / cuts, bare]
    columns = ["weights", "words", "shards", "ADMM s", "speed-up", "one-slack s", "its speed-up"]
    print(table([*columns, "ADMM, free vectors"], rows))


if __name__ == "__main__":
    main()
