"""Constraints as functions of an index, one module per kind."""

from dszog.constraints.base import Constraints, Summary
from dszog.constraints.callables import FunctionConstraints
from dszog.constraints.linear import LinearConstraints
from dszog.constraints.pairwise import PairwiseConstraints

__all__ = [
    "Constraints",
    "FunctionConstraints",
    "LinearConstraints",
    "PairwiseConstraints",
    "Summary",
]
