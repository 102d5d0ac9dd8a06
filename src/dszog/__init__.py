"""Minimise what can only be evaluated, under more constraints than one can look at."""

from dszog.certificate import Certificate
from dszog.certify import certify
from dszog.constraints import Constraints, Simulator
from dszog.errors import (
    DszogError,
    EvaluationError,
    InputError,
    InputTypeError,
    MissingExtraError,
    PrecisionWarning,
)
from dszog.evaluators import EVALUATORS
from dszog.methods import DSZOG, METHODS
from dszog.minimize import minimize
from dszog.problem import Losses, Problem
from dszog.query import ProblemSize, Query, Reply
from dszog.run import Progress
from dszog.status import Status

__version__ = "0.1.0.dev0"

__all__ = [
    "DSZOG",
    "EVALUATORS",
    "METHODS",
    "Certificate",
    "Constraints",
    "DszogError",
    "EvaluationError",
    "InputError",
    "InputTypeError",
    "Losses",
    "MissingExtraError",
    "PrecisionWarning",
    "Problem",
    "ProblemSize",
    "Progress",
    "Query",
    "Reply",
    "Simulator",
    "Status",
    "certify",
    "minimize",
]
