"""The two applications of the paper."""

from dszog_paper.tasks.fairness import CovarianceConstraints, Variant, fairness_task
from dszog_paper.tasks.pairwise import pairwise_task
from dszog_paper.tasks.task import Features, Model, Task, features, predict

__all__ = [
    "CovarianceConstraints",
    "Features",
    "Model",
    "Task",
    "Variant",
    "fairness_task",
    "features",
    "pairwise_task",
    "predict",
]
