"""All targets by name."""

from .api import Api, Sparse
from .base import Target
from .certificates import Certificates
from .files import Checkpoints, Models
from .liars import Liars
from .natives import Natives
from .operators import Operators
from .readers import Readers

TARGETS: dict[str, type[Target]] = {
    target.name: target
    for target in (
        Natives, Api, Sparse, Models, Checkpoints, Readers, Operators, Certificates, Liars,
    )
}  # fmt: skip
