"""
Update a model so that no customer gets worse
=============================================

A bank has a model that its customers have got used to. Now it is to work for a new
group of people as well, and the promise is: *nobody who is a customer today is served
worse than before*, up to a small slack. That is one constraint for each customer, and
with a neural network none of them is convex.

You will learn how to write down one constraint per row of a table as a function of
indices, how to start from a model that is known to be feasible, and how to read the
evidence that comes with the answer. Everything is generated; ``CUSTOMERS=1000000`` in
the environment makes it a million.
"""

from __future__ import annotations

import os
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

import dszog

N_FEATURES, N_HIDDEN = 8, 4
SLACK, TOLERANCE = 0.1, 0.01
DIM = N_HIDDEN * (N_FEATURES + 2) + 1

# %%
# Customers, newcomers, and a network
# -----------------------------------
#
# The network has one hidden layer. ``points`` holds a row of weights for each of
# several networks: the library asks for a few nearby ones at a time.

rng = np.random.default_rng(0)
m, n_new = int(os.environ.get("CUSTOMERS", "20000")), 2000


def people(n: int, truth: Any) -> tuple[Any, Any]:
    """Draw people and whether each of them pays back."""
    X = rng.uniform(-1.0, 1.0, size=(n, N_FEATURES))
    likely = 2.0 * (X @ truth) * (1.0 + 0.5 * np.tanh(X[:, 0] + X[:, 1]))
    return X, np.where(rng.random(n) < expit(likely), 1.0, -1.0)


def network(points: Any, X: Any) -> Any:
    """Return a row of scores for each network."""
    ends = np.cumsum([N_HIDDEN * N_FEATURES, N_HIDDEN, N_HIDDEN])
    inner, shift, outer, bias = np.split(points, ends, axis=1)
    inner = inner.reshape(-1, N_HIDDEN, N_FEATURES)
    hidden = np.tanh(X @ inner.transpose(0, 2, 1) + shift[:, np.newaxis])
    return (hidden @ outer[:, :, np.newaxis])[:, :, 0] + bias


def losses(points: Any, X: Any, y: Any) -> Any:
    """Return the logistic loss of each network for each person."""
    return np.logaddexp(0.0, -y * network(points, X))


truth = rng.normal(size=N_FEATURES)
X, y = people(m, truth)
X_new, y_new = people(n_new, truth + 0.8 * rng.normal(size=N_FEATURES))
print(f"Data: generated, {m:,} customers and {n_new:,} newcomers, {DIM} weights")


def trained(rows: Any, labels: Any, start: Any) -> Any:
    """Return a network fitted to rows alone, whatever becomes of others."""

    def mean_loss(w: Any) -> float:
        return float(losses(w[np.newaxis], rows, labels).mean() + 1e-3 * w @ w)

    return minimize(mean_loss, start, method="L-BFGS-B", options={"maxiter": 40}).x


old = trained(X[:1000], y[:1000], rng.normal(size=DIM) / 3)

# %%
# One constraint for each customer
# --------------------------------
#
# Constraint ``j`` holds where its value is at most 0: where customer ``j`` has no more
# loss than before, and the slack. Only the customers in ``j`` are looked at, a few
# hundred an iteration, whether there are twenty thousand or a million. Violations of
# up to ``constraint_tol`` may be left: so that much is taken off the slack, and a
# result within it keeps the promise.

before = losses(old[np.newaxis], X, y)[0]
allowed = before + SLACK - TOLERANCE
problem = dszog.Problem(
    dszog.Losses(lambda points, i: losses(points, X_new[i], y_new[i]), n_new),
    dszog.Constraints(lambda points, j: losses(points, X[j], y[j]) - allowed[j], m),
    DIM,
    x0=old,  # feasible: nobody is worse off than before
)
result = dszog.minimize(
    problem, method="dszog", max_iterations=2000, constraint_tol=TOLERANCE, seed=0
)
print(result.message)

# %%
# The verdict
# -----------
#
# Beside it, what happens without the promise: the network is fitted to the newcomers
# and the customers are left to their fate.

careless = trained(X_new[:1000], y_new[:1000], old)
candidates = {"old": old, "careless": careless, "careful": result.x}
changes = {
    name: losses(w[np.newaxis], X, y)[0] - before for name, w in candidates.items()
}
print(f"{'':8}  loss of newcomers  customers beyond the slack  worst change")
for name, w in candidates.items():
    fresh = float(losses(w[np.newaxis], X_new, y_new).mean())
    beyond = int((changes[name] > SLACK).sum())
    print(f"{name:8}  {fresh:17.4f}  {beyond:26,}  {changes[name].max():12.4f}")
verdict = "feasible" if result.maxcv <= TOLERANCE else "not feasible"
print(
    f"Verdict: {verdict}, the customer of {m:,} who is worst off loses "
    f"{changes['careful'].max():.3f} of the {SLACK} that was allowed."
)

# %%
# Who gets worse?
# ---------------


def draw() -> None:
    """Draw how many customers change by how much."""
    _, axis = plt.subplots(figsize=(7, 3.8), layout="tight")
    bins = np.linspace(-0.6, 1.2, 91).tolist()
    for name, colour in (("careless", "C1"), ("careful", "C0")):
        axis.hist(changes[name], bins, color=colour, alpha=0.7, label=name)
    axis.axvline(SLACK, color="black", lw=1)
    axis.text(SLACK + 0.02, 0.6 * axis.get_ylim()[1], "as much as may be")
    axis.set(
        yscale="log",
        xlabel="change of a customer's loss (right of the line: broken promise)",
        ylabel="customers",
        title=f"Worst off: {changes['careless'].max():.1f} with the careless update, "
        f"{changes['careful'].max():.2f} with the careful one",
    )
    axis.legend(loc="upper right")


draw()
plt.show()
