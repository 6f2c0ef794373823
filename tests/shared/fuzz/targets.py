"""All targets by name; those of PyTorch, JAX and Dask where these are installed."""

import importlib.util

from .api import Api, Sparse
from .base import Target
from .certificates import Certificates
from .files import Checkpoints, Models
from .liars import Liars
from .natives import Natives
from .operators import Operators
from .readers import Readers
from .shell import Decode, Shell
from .tensors import Batch, Jax, Torch
from .users import Dask, Extreme, Latent, Weighted

_ALL: list[type[Target]] = [
    Natives, Api, Sparse, Models, Checkpoints, Readers, Operators, Batch, Latent, Weighted, Extreme,
    Shell, Decode, Certificates, Liars,
]  # fmt: skip
for _kind, _modules in ((Torch, ["torch"]), (Jax, ["torch", "jax"]), (Dask, ["distributed"])):
    if all(importlib.util.find_spec(_name) for _name in _modules):
        _ALL.append(_kind)
TARGETS = {target.name: target for target in _ALL}
