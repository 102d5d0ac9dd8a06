"""Sentences of the report that are the same whatever was found."""

from __future__ import annotations

TITLE = "DSZOG: the paper’s tables and figures"

SOURCE = (
    "W. Shi, H. Gao and B. Gu, “Gradient-Free Method for Heavily Constrained Nonconvex "
    "Optimization”, ICML 2022: its tables and figures, run again, with what the paper "
    "leaves out beside them."
)

HOW_TO_READ = (
    "Accuracies are test accuracies in percent: our mean and standard deviation, then "
    "the paper’s. In bold: the highest of ours for a data set.",
    "The majority share is what always predicting the more frequent class scores; "
    "logistic regression is trained without the constraints.",
    "“Violated” is the share of the constraints that the last iterate violates at all, "
    "“beyond 0.01” the share that it violates by more than that, “worst” the largest "
    "violation, all after scaling the weights to |w| = 1. The constraints are "
    "homogeneous, or nearly so: without that scale, shrinking w would look like "
    "feasibility. The tables with all numbers also have them as trained.",
    "Lifted and full are two forms of one feasible set: with one more variable, a row "
    "for each sample; without, a row for each pair. Seconds are those of one machine "
    "and are never to be compared with the paper’s.",
)

FIGURES = (
    "First repetition. Lifted forms are solid, full ones dashed; DSZOG is drawn thick. "
    "Points at zero stand at the left edge; constraint queries include the rows that "
    "subproblems respect."
)

GROUPS = "Error rates of the first repetition on the test part, for each group."

LIMITS = (
    "The paper has 10 repetitions and stops the other methods after 10,000 s; it does "
    "not give DSZOG’s number of iterations."
)
