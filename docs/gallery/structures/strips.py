"""
Sequences: reading digits that count up
=======================================

Strips of noisy digits are classified digit by digit and as a chain (:doc:`/quickstart`).
"""

from structsolve import StructuredSVM, get_structure, make_strips
from structsolve.evaluation.plotting import plot_sequences

train, test = make_strips(n_train=500, n_test=100)
alone = get_structure("chain", transitions=False, start_end=False)
models = {"alone": StructuredSVM(alone, alpha=0.01), "chain": StructuredSVM("chain", alpha=0.01)}
guesses = {
    name: model.fit(train.pixels, train.labels).predict(test.pixels[:4])
    for name, model in models.items()
}
figure = plot_sequences(test.images[:4], test.labels[:4], guesses)
