"""All targets by name."""

from .natives import Natives

TARGETS = {target.name: target for target in (Natives,)}
