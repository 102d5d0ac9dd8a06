"""Choosing a method's step size and penalty by short runs, inside the budget.

Each trial is a run of the method with a small budget, checked like any other; the next
trial, and at last the run itself, goes on from where the better ones got to. So little
of what the trials cost is lost.
"""

from dszog.tuning.plan import FACTORS, Tuning, check_tuning
from dszog.tuning.report import Trial, TuningReport
from dszog.tuning.tuner import Tuner

__all__ = [
    "FACTORS",
    "Trial",
    "Tuner",
    "Tuning",
    "TuningReport",
    "check_tuning",
]
