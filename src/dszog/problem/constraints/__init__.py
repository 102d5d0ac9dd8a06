"""Constraints as functions of an index, one module per kind."""

from dszog.problem.constraints.base import Constraints, Summary
from dszog.problem.constraints.callables import (
    BlockConstraints,
    CallableConstraints,
    FunctionConstraints,
)
from dszog.problem.constraints.concat import ConcatConstraints
from dszog.problem.constraints.linear import LinearConstraints
from dszog.problem.constraints.pairwise import PairwiseConstraints
from dszog.problem.constraints.simulator import Simulator, SimulatorConstraints
from dszog.problem.constraints.vector import VectorConstraints

__all__ = [
    "BlockConstraints",
    "CallableConstraints",
    "ConcatConstraints",
    "Constraints",
    "FunctionConstraints",
    "LinearConstraints",
    "PairwiseConstraints",
    "Simulator",
    "SimulatorConstraints",
    "Summary",
    "VectorConstraints",
]
