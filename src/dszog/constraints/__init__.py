"""Constraints as functions of an index, one module per kind."""

from dszog.constraints.base import Constraints, Summary
from dszog.constraints.blocks import BlockConstraints
from dszog.constraints.callables import CallableConstraints, FunctionConstraints
from dszog.constraints.concat import ConcatConstraints
from dszog.constraints.linear import LinearConstraints
from dszog.constraints.pairwise import PairwiseConstraints
from dszog.constraints.simulator import Simulator, SimulatorConstraints
from dszog.constraints.vector import VectorConstraints

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
