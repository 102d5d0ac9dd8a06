"""Classifiers under constraints, with the interface of scikit-learn.

Needs scikit-learn: ``pip install "dszog[learn]"``.
"""

from dszog.errors import MissingExtraError

try:
    import sklearn  # noqa: F401
except ImportError as missing:
    raise MissingExtraError.of("dszog.learn", "scikit-learn", "learn") from missing

from dszog.learn.fair import FairClassifier
from dszog.learn.losses import LOSSES
from dszog.learn.model_file import load
from dszog.learn.pairwise import PairwiseClassifier
from dszog.learn.report import FairnessReport, GroupRates, fairness_report

__all__ = [
    "LOSSES",
    "FairClassifier",
    "FairnessReport",
    "GroupRates",
    "PairwiseClassifier",
    "fairness_report",
    "load",
]
