"""Parts of ExtremeSVM: what it is given, its solvers, probabilities, smaller models, files."""
