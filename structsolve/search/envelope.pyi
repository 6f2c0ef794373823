# Functions for other compiled modules alone.
