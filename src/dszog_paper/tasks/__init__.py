"""The two applications of the paper."""

from dszog_paper.tasks.base import Task
from dszog_paper.tasks.fairness import CovarianceConstraints, fairness_task
from dszog_paper.tasks.models import Features, accuracy, features, predict
from dszog_paper.tasks.pairwise import pairwise_task

__all__ = [
    "CovarianceConstraints",
    "Features",
    "Task",
    "accuracy",
    "fairness_task",
    "features",
    "pairwise_task",
    "predict",
]
