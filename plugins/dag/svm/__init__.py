"""HierarchicalSVM: nodes that share weights, their fair regularisation, sparse models."""
