"""Dynamic programs over chains and forests: the compiled loops that structures share."""
