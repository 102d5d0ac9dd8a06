"""Evaluators hold the user's functions and answer queries."""

from dszog.evaluators._open import EVALUATORS, Workers, check_evaluator, open_evaluator
from dszog.evaluators._supervisor import Traffic
from dszog.evaluators.base import Evaluator
from dszog.evaluators.dask import Dask
from dszog.evaluators.executor import OnExecutor, Threads
from dszog.evaluators.processes import Processes
from dszog.evaluators.ray import Ray
from dszog.evaluators.serial import Serial

__all__ = [
    "EVALUATORS",
    "Dask",
    "Evaluator",
    "OnExecutor",
    "Processes",
    "Ray",
    "Serial",
    "Threads",
    "Traffic",
    "Workers",
    "check_evaluator",
    "open_evaluator",
]
