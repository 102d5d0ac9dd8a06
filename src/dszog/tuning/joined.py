"""Results in which all trials are counted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace

from dszog.run.accounting import Costs
from dszog.run.failures import FailureReport
from dszog.run.result import Result
from dszog.tuning.budget import Spent
from dszog.tuning.report import TuningReport
from dszog.tuning.trials import Outcome


def joined(
    result: Result, report: TuningReport, outcomes: Sequence[Outcome], seed: int
) -> Result:
    """Return a result, of a trial or of the run after them, that counts all trials."""
    of_trials = [one.result for one in outcomes if one.result is not None]
    is_trial = any(result is one for one in of_trials)
    last = [] if is_trial else [result]
    runs = [*of_trials, *last]
    failures = [*(one.failures for one in outcomes), *(run.failures for run in last)]
    digests = "".join(run.digest for run in runs)
    whole = Result(result)
    whole.nit = report.nit + sum(run.nit for run in last)
    whole.nfev = report.nfev + sum(run.nfev for run in last)
    whole.ncev = report.ncev + sum(run.ncev for run in last)
    whole.seed = seed
    whole.costs = replace(
        Costs.total([run.costs for run in runs]),
        n_loss_queries=whole.nfev,  # with those of trials that failed
        n_constraint_queries=whole.ncev,
    )
    whole.failures = FailureReport.total(failures)
    whole.digest = hashlib.sha256(digests.encode()).hexdigest()
    whole.tuning = report
    whole.message = f"{_said(report)} {result.message}"
    if not is_trial:
        spent = Spent.total(one.spent for one in outcomes)
        whole.history = spent.history_on(result.history)
    return whole


def _said(report: TuningReport) -> str:
    settings = {tuple(trial.settings.items()) for trial in report.trials}
    chosen = " and ".join(f"{k}={v:.3g}" for k, v in report.best.settings.items())
    return (
        f"Of {len(settings)} settings, tried with {report.n_queries:,} queries, "
        f"{chosen} was the best."
    )
