"""Feasible sets: nearest points, linear minimisers, and the solvers behind them."""

from dszog.maths.subproblems.base import Domain, Solution
from dszog.maths.subproblems.polyhedron import Polyhedron
from dszog.maths.subproblems.simple import Box, L1Ball, L2Ball, Simplex
from dszog.maths.subproblems.sliding import slide

__all__ = [
    "Box",
    "Domain",
    "L1Ball",
    "L2Ball",
    "Polyhedron",
    "Simplex",
    "Solution",
    "slide",
]
