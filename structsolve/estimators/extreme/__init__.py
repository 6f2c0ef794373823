"""Parts of ExtremeSVM: input checks, training, probabilities, pruning, files."""
