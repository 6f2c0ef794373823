"""All targets by name."""

from .api import Api, Sparse
from .files import Checkpoints, Models
from .natives import Natives
from .operators import Operators
from .readers import Readers

TARGETS = {
    target.name: target
    for target in (Natives, Api, Sparse, Models, Checkpoints, Readers, Operators)
}
