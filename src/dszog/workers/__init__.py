"""Evaluators hold the user's functions and answer queries."""

from dszog.run.accounting import Traffic
from dszog.workers._open import EVALUATORS, check_evaluator, open_evaluator
from dszog.workers.base import Evaluator, Workers
from dszog.workers.dask import Dask
from dszog.workers.processes import Processes
from dszog.workers.ray import Ray
from dszog.workers.serial import Serial
from dszog.workers.threads import Threads

__all__ = [
    "EVALUATORS",
    "Dask",
    "Evaluator",
    "Processes",
    "Ray",
    "Serial",
    "Threads",
    "Traffic",
    "Workers",
    "check_evaluator",
    "open_evaluator",
]
