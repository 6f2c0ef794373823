# Functions for other compiled modules only.
