"""What `dszog fit` says of a model, in words and as JSON."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dszog.cli.data import Samples
from dszog.cli.files import versions
from dszog.contract.arrays import FloatArray
from dszog.problem.constraints import Constraints
from dszog.status import Status

if TYPE_CHECKING:
    from dszog.cli.fit import FitRequest

BUDGET_OVER = (Status.MAX_TIME, Status.MAX_QUERIES)
GAPS = ("equalized_odds", "equal_opportunity", "demographic_parity")


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A model with all that is said about it."""

    model: Any
    request: FitRequest
    file: str
    features: list[str] | None
    train: Samples
    test: Samples | None
    seconds: float
    notes: list[str]

    @property
    def is_interrupted(self) -> bool:
        return bool(self.model.result_.status == Status.INTERRUPTED)

    @property
    def wants_kept(self) -> bool:
        """Whether a violation left over means that it failed."""
        is_asked = "constraint_tol" in self.request.given
        return self.request.task == "fair" or self.model.penalty is None or is_asked

    @property
    def is_kept(self) -> bool:
        """Whether the constraints are kept: no model is asked to be the best one."""
        result = self.model.result_
        return bool(result.maxcv <= result.constraint_tol)

    @property
    def is_success(self) -> bool:
        planned = bool(self.model.result_.status.is_planned)
        begun = planned and not self.has_not_begun
        return begun and (self.is_kept or not self.wants_kept)

    @property
    def has_not_begun(self) -> bool:
        """Whether the budget ended before the first iteration."""
        result = self.model.result_
        return bool(result.nit == 0 and result.status in BUDGET_OVER)

    @property
    def verdict(self) -> str:
        result = self.model.result_
        if self.is_interrupted:
            return "Interrupted. This is the best model so far."
        if not result.status.is_planned:
            return f"No success: {result.status.sentence}"
        if self.has_not_begun:
            what = "time was up" if result.status == Status.MAX_TIME else "budget ended"
            return f"No success: the {what} before the first iteration."
        if self.is_kept:
            return "Done: the constraints are kept to within the tolerance."
        if self.wants_kept:
            return "No success: the model does not keep the constraints."
        if result.is_start and result.status != Status.CONVERGED:
            return "Done, but the model is the one that the training began with."
        return "Done. The penalty weighs pairs against the loss: not all are kept."

    @cached_property
    def parts(self) -> dict[str, dict[str, Any]]:
        """The figures of the rows that were trained on, and of those that were not."""
        found = {"train": self._part(self.train)}
        if self.test is not None:
            found["test"] = self._part(self.test)
        return found

    def _part(self, rows: Samples) -> dict[str, Any]:
        model = self.model
        scores = model.decision_function(rows.X)
        positive = rows.y == model.pos_label_
        if model.pos_label_ == model.classes_[0]:
            scores = -scores
        share = float(positive.mean())
        found: dict[str, Any] = {
            "rows": len(rows),
            "positive_rows": int(positive.sum()),
            "accuracy": float(((scores > 0.0) == positive).mean()),
            "accuracy_of_the_larger_class": max(share, 1.0 - share),
        }
        if self.request.task == "pairwise":
            return found | pairs(scores, positive, float(model.margin))
        report = model.fairness_report(rows.X, rows.y, rows.sensitive)
        groups = [asdict(row) for row in (report.overall, *report.groups)]
        return found | {"gaps": {k: report.gap(k) for k in GAPS}, "groups": groups}

    @property
    def summary(self) -> str:
        lines = []
        for name, part in self.parts.items():
            text = f"{name:5}  {part['rows']:,} rows  accuracy {part['accuracy']:.4f}"
            if self.request.task == "pairwise":
                text += f"  pairs out of order {_percent(part['share_violated'])}"
            else:
                text += f"  gap of equalised odds {part['gaps']['equalized_odds']:.3f}"
            lines.append(text)
        return "\n".join(lines)


def pairs(
    scores: FloatArray, positive: NDArray[np.bool_], margin: float
) -> dict[str, Any]:
    """Return how many pairs of rows are out of order, all of them looked at."""
    if positive.all() or not positive.any():
        nothing = dict.fromkeys(("share_violated", "worst_violation"))
        return {"pairs": 0, "violated": 0, **nothing}
    high, low = (scores[rows, np.newaxis] for rows in (positive, ~positive))
    found = Constraints.pairwise(high, low, margin).summary(np.ones(1))
    return {
        "pairs": found.n_constraints,
        "violated": found.n_violated,
        "share_violated": found.n_violated / found.n_constraints,
        "worst_violation": max(found.worst_value, 0.0),
    }


# ------------------------------------------------------------------------------- JSON


def facts(fitted: Fitted) -> dict[str, Any]:
    request, model, result = fitted.request, fitted.model, fitted.model.result_
    tested_on = None if request.test is None else str(request.test)
    if request.holdout is not None:
        tested_on = f"{request.holdout:g} of the rows"
    feasibility = result.certificate.feasibility
    is_last = int(model.pos_label_ == model.classes_[1])
    made = {
        "task": request.task,
        "file": fitted.file,
        "tested_on": tested_on,
        "verdict": fitted.verdict,
        "success": fitted.is_success,
        "constraints_kept": fitted.is_kept,
        "status": result.status.name,
        "message": result.message,
        "notes": fitted.notes,
        "classes": model.classes_.tolist(),
        "positive": model.classes_.tolist()[is_last],
        "features": int(model.n_features_in_),
        "feature_names": fitted.features,
        "settings": model.get_params(deep=False),
        **fitted.parts,
        "certificate": {
            "objective": result.fun,
            "worst_violation": result.maxcv,
            "kind": feasibility.kind,
            "constraints": feasibility.n_constraints,
            "checked": feasibility.n_checked,
            "violated": feasibility.n_violated,
            "share_bound": feasibility.share_bound,
            "text": str(result.certificate),
        },
        "queries": {"losses": result.nfev, "constraints": result.ncev},
        "iterations": result.nit,
        "seed": request.seed,
        "digest": result.digest,
        "seconds": round(fitted.seconds, 3),
        "versions": versions(),
    }
    if request.task == "fair":
        made["constraint_names"] = list(model.constraint_names_)
        made["unconstrained_groups"] = list(model.unconstrained_groups_)
    return made


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.3g} %"
