"""What a state of the sampled SQP is made of, for those who save it."""

from __future__ import annotations

from dszog.methods.sampled_sqp.bundle import Bundle
from dszog.methods.sampled_sqp.case_values import CaseValues
from dszog.methods.sampled_sqp.curvature import Pairs
from dszog.methods.sampled_sqp.looks import Look
from dszog.methods.sampled_sqp.losses_table import LossTable
from dszog.methods.sampled_sqp.models import WorkingSet
from dszog.methods.sampled_sqp.screening import Seen
from dszog.methods.sampled_sqp.state import PHASES

PARTS = (Look, WorkingSet, LossTable, Seen, CaseValues, Pairs, Bundle)

__all__ = [
    "PARTS",
    "PHASES",
    "Bundle",
    "CaseValues",
    "Look",
    "LossTable",
    "Pairs",
    "Seen",
    "WorkingSet",
]
