"""What `dszog fit` says of a model: figures as JSON, and a page of Markdown."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dszog.cli.data import Rows
from dszog.cli.writing import known, versions, write_text
from dszog.contract.arrays import FloatArray
from dszog.contract.validation import printable


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A model with all that is said about it."""

    model: Any
    task: str
    file: str
    features: list[str] | None
    train: Rows
    test: Rows | None
    test_is: str
    wants_kept: bool  # whether a violation left over means that it failed
    is_interrupted: bool
    seed: int
    seconds: float
    notes: list[str]

    @property
    def is_success(self) -> bool:
        """Whether the run did what it was asked to."""
        result = self.model.result_
        planned = bool(result.status.is_planned)
        return planned and (bool(result.success) or not self.wants_kept)

    @property
    def verdict(self) -> str:
        """What to say first."""
        result = self.model.result_
        if self.is_interrupted:
            return "Interrupted. This is the best model so far."
        if not result.status.is_planned:
            return f"No success: {result.status.sentence}"
        if result.success:
            return "Done: the constraints are kept to within the tolerance."
        if self.wants_kept:
            return "No success: the model does not keep the constraints."
        return "Done. The penalty weighs pairs against the loss: not all are kept."

    @cached_property
    def parts(self) -> dict[str, dict[str, Any]]:
        """The figures of the rows that were trained on, and of those that were not."""
        found = {"train": self._part(self.train)}
        if self.test is not None:
            found["test"] = self._part(self.test)
        return found

    def _part(self, rows: Rows) -> dict[str, Any]:
        model = self.model
        scores = model.decision_function(rows.X)
        positive = rows.y == model.classes_[1]
        called = scores > 0.0
        found: dict[str, Any] = {
            "rows": len(rows),
            "positive_rows": int(positive.sum()),
            "accuracy": float((called == positive).mean()),
            "accuracy_of_the_larger_class": float(
                max(positive.mean(), 1.0 - positive.mean())
            ),
        }
        if self.task == "pairwise":
            return found | pairs(scores, positive, float(model.margin))
        report = model.fairness_report(rows.X, rows.y, rows.sensitive)
        return found | {
            "gaps": {
                kind: report.gap(kind)
                for kind in (
                    "equalized_odds",
                    "equal_opportunity",
                    "demographic_parity",
                )
            },
            "groups": [asdict(row) for row in (report.overall, *report.groups)],
        }

    @property
    def summary(self) -> str:
        """The figures in a few lines, for a terminal."""
        lines = []
        for name, part in self.parts.items():
            text = f"{name:5}  {part['rows']:,} rows  accuracy {part['accuracy']:.4f}"
            if self.task == "pairwise":
                text += f"  pairs out of order {_percent(part['share_violated'])}"
            else:
                text += f"  gap of equalised odds {part['gaps']['equalized_odds']:.3f}"
            lines.append(text)
        return "\n".join(lines)


def pairs(
    scores: FloatArray, positive: NDArray[np.bool_], margin: float
) -> dict[str, Any]:
    """Return how many pairs of rows are out of order, all of them looked at.

    Examples
    --------
    >>> pairs(np.array([2.0, 1.0, 0.0, 1.5]), np.array([True, True, False, False]), 0.0)
    {'pairs': 4, 'violated': 1, 'share_violated': 0.25, 'worst_violation': 0.5}
    """
    high, low = np.sort(scores[positive]), np.sort(scores[~positive])
    n = len(high) * len(low)
    if not n:
        return {
            "pairs": 0,
            "violated": 0,
            "share_violated": None,
            "worst_violation": None,
        }
    n_bad = int(np.searchsorted(high, low + margin, side="left").sum())
    return {
        "pairs": n,
        "violated": n_bad,
        "share_violated": n_bad / n,
        "worst_violation": float(max(low[-1] - high[0] + margin, 0.0)),
    }


# ------------------------------------------------------------------------------- JSON


def figures(fitted: Fitted) -> dict[str, Any]:
    """Return all figures, as JSON holds them."""
    model, result = fitted.model, fitted.model.result_
    feasibility = result.certificate.feasibility
    made = {
        "task": fitted.task,
        "file": fitted.file,
        "tested_on": fitted.test_is or None,
        "verdict": fitted.verdict,
        "success": fitted.is_success,
        "constraints_kept": bool(result.success),
        "status": result.status.name,
        "message": result.message,
        "notes": fitted.notes,
        "classes": [_plain(label) for label in model.classes_.tolist()],
        "features": int(model.n_features_in_),
        "feature_names": fitted.features,
        "settings": {
            name: _plain(value) for name, value in model.get_params(deep=False).items()
        },
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
        "seed": fitted.seed,
        "digest": result.digest,
        "seconds": round(fitted.seconds, 3),
        "versions": versions(),
    }
    if fitted.task == "fair":
        made["constraint_names"] = list(model.constraint_names_)
        made["unconstrained_groups"] = list(model.unconstrained_groups_)
    cleaned: dict[str, Any] = known(made)
    return cleaned


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


# --------------------------------------------------------------------------- Markdown


def markdown(report: dict[str, Any]) -> str:
    """Return the figures as a short page."""
    negative, positive = report["classes"]
    lines = [
        f"# {_word(report['task'])} classifier",
        "",
        report["verdict"],
        "",
        f"Trained on {_word(report['file'])}, {report['features']:,} features, seed "
        f"{report['seed']}, {report['seconds']:.1f} s. The positive class is "
        f"{_word(positive)}, the other {_word(negative)}.",
        "",
    ]
    parts = {name: report[name] for name in ("train", "test") if name in report}
    if len(parts) == 1:
        lines += ["No rows were held out: these figures are of the training rows.", ""]
    heads = ["", *parts]
    rows = [
        ["rows", *(f"{part['rows']:,}" for part in parts.values())],
        ["accuracy", *(f"{part['accuracy']:.4f}" for part in parts.values())],
        [
            "share of the larger class",
            *(f"{part['accuracy_of_the_larger_class']:.4f}" for part in parts.values()),
        ],
    ]
    if report["task"] == "pairwise":
        rows += [
            [
                "pairs out of order",
                *(_percent(part["share_violated"]) for part in parts.values()),
            ],
            [
                "worst pair",
                *(_number(part["worst_violation"]) for part in parts.values()),
            ],
        ]
    else:
        rows += [
            [
                f"gap, {kind.replace('_', ' ')}",
                *(f"{part['gaps'][kind]:.3f}" for part in parts.values()),
            ]
            for kind in report["train"]["gaps"]
        ]
    lines += [*_table(heads, rows), ""]
    if report["task"] == "fair":
        for name, part in parts.items():
            lines += [f"## Groups, {name} rows", "", *_groups(part["groups"]), ""]
    lines += [
        "## Certificate (training rows)",
        "",
        "```",
        printable(report["certificate"]["text"], keep="\n"),
        "```",
        "",
        f"{report['queries']['losses']:,} queries of losses and "
        f"{report['queries']['constraints']:,} of constraints in "
        f"{report['iterations']:,} iterations.",
    ]
    lines += [f"\n{printable(note)}" for note in report["notes"]]
    return "\n".join(lines) + "\n"


def _groups(groups: list[dict[str, Any]]) -> list[str]:
    heads = ["", "rows", "accuracy", "selected", "true positive", "false positive"]
    rates = ("accuracy", "selection_rate", "true_positive_rate", "false_positive_rate")
    return _table(
        heads,
        [
            [
                _word(f"{row['column']}: {row['group']}" if row["column"] else "all"),
                f"{row['count']:,}",
                *(_number(row[rate]) for rate in rates),
            ]
            for row in groups
        ],
    )


def _table(heads: list[str], rows: list[list[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def _word(value: Any) -> str:
    """Return somebody's word so that it stays a word in Markdown."""
    text = printable(str(value))
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#!" else c for c in text)


def _percent(share: float | None) -> str:
    return "not known" if share is None else f"{100 * share:.3g} %"


def _number(value: float | None) -> str:
    return "not known" if value is None else f"{value:.3f}"


def write_report(output: Path, report: dict[str, Any], page: str) -> list[Path]:
    """Write both, each whole or not at all; return their paths."""
    text = json.dumps(report, indent=2, allow_nan=False) + "\n"
    paths = [output / "report.json", output / "report.md"]
    for path, content in zip(paths, (text, page), strict=True):
        write_text(path, content)
    return paths
