"""Settings that Optuna chooses, one after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dszog.errors import MissingExtraError

FIRST = 4  # trials of fixed factors, before Optuna chooses
# Factors between which Optuna may choose. A penalty below the untuned one flatters
# short runs, and leaves the last one with violations.
SPAN = {"step_size": (1e-3, 1e3), "penalty": (1.0, 1e2)}


def import_optuna() -> Any:
    """Return Optuna, or say how to get it."""
    try:
        import optuna
    except ImportError as missing:
        raise MissingExtraError.of(
            'Tuning with sampler="optuna"', "optuna", "tune"
        ) from missing
    return optuna


class Chooser:
    """Has Optuna's TPE sampler choose settings."""

    def __init__(self, names: Sequence[str], method: Any, seed: int) -> None:
        self._optuna = optuna = import_optuna()
        self._ranges: dict[str, Any] = {}
        for name in names:
            untuned, (low, high) = float(getattr(method, name)), SPAN[name]
            self._ranges[name] = optuna.distributions.FloatDistribution(
                low * untuned, high * untuned, log=True
            )
        level = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        try:
            self._study = optuna.create_study(
                sampler=optuna.samplers.TPESampler(
                    seed=seed % 2**32, n_startup_trials=FIRST
                )
            )
        finally:
            optuna.logging.set_verbosity(level)
        self._asked: Any = None

    def add(self, settings: dict[str, float], value: float) -> None:
        """Let Optuna know of a trial that it did not choose."""
        if math.isfinite(value):
            self._study.add_trial(
                self._optuna.trial.create_trial(
                    params=settings, distributions=self._ranges, value=value
                )
            )

    def ask(self) -> dict[str, float]:
        """Return the settings to try next."""
        self._asked = self._study.ask(self._ranges)
        return {name: float(value) for name, value in self._asked.params.items()}

    def tell(self, value: float) -> None:
        """Tell what came of them."""
        if math.isfinite(value):
            self._study.tell(self._asked, value)
        else:
            failed = self._optuna.trial.TrialState.FAIL
            self._study.tell(self._asked, state=failed)
