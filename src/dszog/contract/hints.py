"""What to say to somebody who uses the words of SciPy, scikit-learn or the paper."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from dszog.contract.validation import did_you_mean

RENAMED = {  # what some arguments are called elsewhere
    "maxiter": "max_iterations",
    "max_iter": "max_iterations",
    "n_iter": "max_iterations",
    "maxfev": "max_queries",  # which counts values of constraints as well
    "maxfun": "max_queries",
    "maxtime": "max_time",
    "disp": "progress",
    "verbose": "progress",
    "iprint": "progress",
    "random_state": "seed",
    "rng": "seed",
}
ELSEWHERE = {  # what takes the place of others
    "hess": "Second derivatives are not used: leave it out.",
    "hessp": "Second derivatives are not used: leave it out.",
    "eps": "Lengths of differences are found by themselves: leave it out.",
    "rhobeg": "The first step is found by itself: leave it out, or give x_scale=...",
    "initial_tr_radius": "The first step is found by itself: leave it out, or give "
    "x_scale=...",
    "workers": "Say who evaluates: evaluator=dszog.evaluators.Processes(4).",
    "sense": "To maximise, return the negative of the objective.",
    "maximize": "To maximise, return the negative of the objective.",
    "n_jobs": "Say who evaluates: evaluator=dszog.evaluators.Processes(4).",
}
LETTERS = {  # of the paper
    "eta": "step_size",
    "eta_w": "step_size",
    "eta_p": "dual_step_size",
    "beta": "penalty",
    "mu": "radius",
    "q": "n_directions",
    "lam": "dual_ridge",
    "lambda": "dual_ridge",
    "lambda_": "dual_ridge",
    "b": "averaging",
    "a": "dual_averaging",
    "c": "step_eps",
    "M1": "loss_batch",
    "M2": "constraint_batch",
    "M3": "dual_batch",
    "T": "horizon",
}
OF_SCIPY = {
    *("nelder-mead", "powell", "cg", "bfgs", "newton-cg", "l-bfgs-b", "tnc", "cobyla"),
    *("cobyqa", "slsqp", "trust-constr", "dogleg", "trust-ncg", "trust-exact"),
    *("trust-krylov",),
}


def about_argument(name: str, arguments: Iterable[str]) -> str:
    """Return a sentence on an unknown argument; empty if none helps."""
    if name in ELSEWHERE:
        return f" {ELSEWHERE[name]}"
    return did_you_mean(RENAMED.get(name, name), arguments)


def about_option(name: str, options: Iterable[str], arguments: Iterable[str]) -> str:
    """Return a sentence on an option that a method lacks; empty if none helps."""
    if LETTERS.get(name) in set(options):
        return f" It is the paper's letter for {LETTERS[name]!r}."
    if name in ELSEWHERE:
        return f" {ELSEWHERE[name]}"
    own, options = set(arguments), list(options)
    meant = difflib.get_close_matches(name, [*options, *RENAMED, *own], n=1)
    for word in (name, *meant):
        if word not in options and RENAMED.get(word, word) in own:
            return f" Give it to minimize itself: {RENAMED.get(word, word)}=..."
    return did_you_mean(name, options)


def about_method(name: str) -> str:
    """Return a sentence on a method of another library; empty if none is near."""
    if name.lower() not in OF_SCIPY:
        return did_you_mean(name.lower(), sorted(OF_SCIPY))
    return (
        " It is one of SciPy: call scipy.optimize.minimize, which is the better choice "
        "for few, cheap constraints; or leave `method` out."
    )
