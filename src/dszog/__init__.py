"""Minimise what can only be evaluated, under more constraints than one can look at."""

from dszog import workers as evaluators
from dszog._version import VERSION
from dszog.certify import certify
from dszog.contract import ProblemSize, Query, Reply
from dszog.errors import (
    CheckpointError,
    CheckpointWarning,
    CheckpointWriteError,
    DszogError,
    EmptySetError,
    EvaluationError,
    InputError,
    InputTypeError,
    MissingExtraError,
    PrecisionWarning,
    PurityWarning,
    StartWarning,
    SubproblemError,
)
from dszog.evidence.certificate import Certificate
from dszog.maths import subproblems
from dszog.methods import (
    DSZOG,
    FCGS,
    FZCGS,
    FZFW,
    METHODS,
    ZOPSGD,
    ZOSCGD,
    AccSZOFW,
    AccSZOFWStorm,
    AccZOM,
    SampledSQP,
)
from dszog.methods.theory import TheoremConstants
from dszog.minimize import minimize
from dszog.problem import Losses, Problem
from dszog.problem.constraints import Constraints, Simulator
from dszog.run.accounting import Costs
from dszog.run.history import Progress
from dszog.run.result import Result
from dszog.save.result_file import load_result
from dszog.save.state_file import load_state, save_state
from dszog.status import Status
from dszog.workers import EVALUATORS

__version__ = VERSION

__all__ = [
    "DSZOG",
    "EVALUATORS",
    "FCGS",
    "FZCGS",
    "FZFW",
    "METHODS",
    "ZOPSGD",
    "ZOSCGD",
    "AccSZOFW",
    "AccSZOFWStorm",
    "AccZOM",
    "Certificate",
    "CheckpointError",
    "CheckpointWarning",
    "CheckpointWriteError",
    "Constraints",
    "Costs",
    "DszogError",
    "EmptySetError",
    "EvaluationError",
    "InputError",
    "InputTypeError",
    "Losses",
    "MissingExtraError",
    "PrecisionWarning",
    "Problem",
    "ProblemSize",
    "Progress",
    "PurityWarning",
    "Query",
    "Reply",
    "Result",
    "SampledSQP",
    "Simulator",
    "StartWarning",
    "Status",
    "SubproblemError",
    "TheoremConstants",
    "certify",
    "evaluators",
    "load_result",
    "load_state",
    "minimize",
    "save_state",
    "subproblems",
]
