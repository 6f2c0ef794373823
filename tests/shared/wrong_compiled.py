"""Chains with the compiled operators of ``wrong_native.pyx``: faults, and the kit's messages."""

from functools import partial

from structsolve.plugins.chain.space import ChainSpace, ChainStructure
from structsolve.surrogates import Margin

#: Kind of operator, fault, and the message that it must be met with.
COMPILED = [
    ("ORACLE", "minimises", r"Oracle.argmax .* attains the maximum"),
    ("ORACLE", "top-from-zero", r"Oracle.argmax .* (attains the maximum|the value of its label)"),
    ("ORACLE", "without-last-state", r"Oracle.argmax .* attains the maximum"),
    ("ORACLE", "without-end", r"Oracle.argmax .* (attains the maximum|the value of its label)"),
    ("ORACLE", "without-start", r"Oracle.argmax .* (attains the maximum|the value of its label)"),
    ("ORACLE", "table-turned", r"Oracle.argmax .* (attains the maximum|the value of its label)"),
    ("ORACLE", "value-without-end", r"Oracle.argmax .* returns the value of its label"),
    ("ORACLE", "bound-not-set", r"Oracle.argmax .* bound"),
    ("ORACLE", "bound-too-low", r"Oracle.argmax .* returns a bound that no label exceeds"),
    ("ORACLE", "bound-above", r"Oracle.argmax .* is exact, so its bound is its value"),
    ("ORACLE", "work-too-small", r"Oracle.argmax .* writes only into the memory .*\(work\)"),
    ("ORACLE", "label-beyond", r"Oracle.argmax .* writes only into .*\(label\).*beyond its end"),
    ("ORACLE", "label-before", r"Oracle.argmax .* writes only into .*\(label\).*before its start"),
    ("ORACLE", "theta-written", r"Oracle.argmax .* does not change its arguments"),
    ("ORACLE", "scratch-on-self", r"Oracle.argmax .* in four threads"),
    ("ORACLE", "scratch-global", r"Oracle.argmax .* in four threads"),
    ("ORACLE", "scratch-not-cleared", r"Oracle.argmax"),
    ("ORACLE", "ties-by-turns", r"Oracle.argmax .* gives the same answer twice"),
    ("ORACLE", "table-without-stride", r"Oracle.argmax .* (the maximum|value of its label)"),
    ("ORACLE", "nodes-without-stride", r"Oracle.argmax .* (the maximum|value of its label)"),
    ("ORACLE", "shared-size-forgotten", r"Oracle.argmax .* (the maximum|value of its label)"),
    ("ORACLE", "truth-as-answer", r"Oracle.argmax .* attains the maximum"),
    ("ORACLE", "states-up-to-16", r"Oracle.argmax .* attains the maximum.*19 classes"),
    ("ORACLE", "nodes-up-to-5", r"Oracle.argmax .* \(size \d+"),
    ("ORACLE", "infinity-is-zero", r"mask .* the best allowed label|Oracle.argmax .* constrained"),
    ("ORACLE", "state-too-large", r"Oracle.argmax .* returns a label of the example"),
    ("ORACLE", "raises-for-one-node", r"Oracle.argmax .* answers without .*RuntimeError: one node"),
    ("ORACLE", "single-precision", r"Oracle.argmax .* returns the value of its label"),
    ("ORACLE", "value-of-call-before", r"Oracle.argmax .* returns the value of its label"),
    ("ORACLE", "enumerates", r"SlowOperator: .*grows as the power"),
    ("ORACLE", "label-not-written", r"Oracle.argmax .* returns a label of the example"),
    ("PARTS", "transitions-twice", r"or Parts.encode .* rises by 1 with .*'transition'.* 2 times"),
    ("PARTS", "without-end", r"or Parts.encode .* rises by 1 with .* .block 'end'.* 0 times"),
    ("PARTS", "in-padding", r"Parts.encode .* never touches padding"),
    ("PARTS", "beyond-theta", r"Parts.encode .* gives positions in theta"),
    ("PARTS", "max-entries", r"Parts.encode .* returned 7, expected 0 to 1"),
    ("PARTS", "difference-turned", r"Parts.difference .* is encode\(truth\) - encode\(label\)"),
    ("PARTS", "difference-without-start", r"Parts.difference .* is encode\(truth\)"),
    ("PARTS", "not-a-number", r"Parts.encode .* gives finite values"),
    ("PARTS", "writes-beyond", r"Parts.encode .* writes only into the memory"),
    ("LOSS", "negative", r"Loss 'wrong'.value .* is finite and at least 0"),
    ("LOSS", "at-truth", r"Loss 'wrong'.value .* is 0 for the true label"),
    ("LOSS", "scale-forgotten", r"Loss 'wrong'.augment .* adds"),
    ("LOSS", "constant-forgotten", r"Loss 'wrong'.augment .* adds 1.0 times the loss"),
    ("LOSS", "in-padding", r"Loss 'wrong'.augment .* never touches padding"),
    ("LOSS", "zero-one-said", r"Loss 'wrong'.zero_one .* is 1 for every label except the truth"),
    ("LOSS", "square-decomposes", r"Loss 'wrong'.augment .* adds 1.0 times the loss"),
    ("LOSS", "reads-the-next", r"Loss 'wrong'.(value|augment)"),
    ("LOSS", "not-finite", r"Loss 'wrong'.value .* is finite"),
]
#: Faults of a compiled margin, as check_surrogate tells them.
SURROGATES = [
    ("slope-turned", r"is exact, so its bound is its cut's value|at least its cut's value"),
    ("bound-too-low", r"gives a bound of at least its cut's value"),
    ("bound-above", r"is exact, so its bound is its cut's value"),
    ("not-augmented", r"is convex: no cut lies above the bound elsewhere|is at least 0"),
    ("truth-of-the-data", r"uses the truth of the call"),
    ("one-key", r"gives different cuts different keys"),
    ("in-padding", r"never touches padding"),
    ("beyond-theta", r"gives positions in theta"),
    ("max-entries", r"gave \d+ entries, expected 0 to 1 \(max_entries\)"),
    ("writes-beyond", r"writes only into the memory it is given \(index\)"),
    ("work-too-small", r"writes only into the memory it is given \(work\)"),
    ("below-zero", r"is at least 0: the truth itself violates nothing"),
    ("bound-not-set", r"gives finite numbers"),
    ("theta-written", r"does not change its arguments"),
    ("calls-not-counted", r"counts its oracle calls"),
    ("by-turns", r"gives the same bound twice"),
    ("loss-as-factor", r"is convex: no cut lies above|gives different cuts different keys|slope"),
    ("scratch-not-cleared", r"gives the same bound twice|is exact|is convex|at least"),
    ("raises-for-one-node", r"answers without an exception .*RuntimeError: one node"),
]
#: Faults of a compiled loss, as check_loss tells them.
LOSSES = [
    ("negative", r"is finite and at least 0"),
    ("at-truth", r"is 0 for the true label"),
    ("scale-forgotten", r"augment .* adds"),
    ("in-padding", r"never touches padding"),
    ("square-decomposes", r"adds 1.0 times the loss"),
    ("not-finite", r"is finite"),
]


def surrogate_with(native, fault):
    """A margin whose native operator is compiled with a fault."""

    class WrongMargin(Margin):
        name = "wrong"

        def bind(self, task):
            return native.WrongMargin(fault, task.layout, task.oracle, task.parts, task.loss)

    return WrongMargin()


def structure_with(native, kind, fault):
    """A chain with one faulty compiled operator."""

    class WrongSpace(ChainSpace):
        loss_names = ("wrong",)

        def make_oracle(self):
            return partial(native.Wrong, fault if kind == "ORACLE" else "none")

        def make_parts(self):
            return partial(native.WrongParts, fault if kind == "PARTS" else "none")

        def make_loss(self, loss):
            if loss == "wrong":
                return partial(native.WrongLoss, fault if kind == "LOSS" else "none")
            return super().make_loss(loss)

        def make_power(self, power):
            return None

        def make_projection(self, regularizer):
            return None

    class WrongStructure(ChainStructure):
        name = "wrong"
        layouts = {}  # its oracle takes the chain's own layout alone

        def make_space(self, X, Y, classes=None, fit_intercept=True):
            space, examples = super().make_space(X, Y, classes, fit_intercept)
            space.__class__ = WrongSpace
            return space, examples

        def space_from_state(self, state, arrays):
            space = super().space_from_state(state, arrays)
            space.__class__ = WrongSpace
            return space

    return WrongStructure()
