"""Networks as variables: updates of a model without regressions, and any constraints.

Install it with ``pip install "dszog[torch]"``. See ``docs/networks.md``.
"""

from __future__ import annotations

from dszog.torch.doors import NetworkOptimizer as DSZOG  # noqa: N814  (as people know it)
from dszog.torch.doors import minimize
from dszog.torch.functions import TorchConstraints as Constraints
from dszog.torch.functions import TorchLosses as Losses
from dszog.torch.space import ModuleSpace
from dszog.torch.update import UpdateReport, update

__all__ = [
    "DSZOG",
    "Constraints",
    "Losses",
    "ModuleSpace",
    "UpdateReport",
    "minimize",
    "update",
]
