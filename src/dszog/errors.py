"""Every exception this library raises on purpose.

A message has three parts: what is wrong, what was given, and what to do about it.
"""

from __future__ import annotations


class DszogError(Exception):
    """Base of all errors raised by dszog."""


class InputError(DszogError, ValueError):
    """An argument has the right type and a value that cannot work."""


class InputTypeError(DszogError, TypeError):
    """An argument has a type that cannot work."""


class EvaluationError(DszogError, RuntimeError):
    """A user function failed, or returned something that is not usable values."""


class OutOfTimeError(DszogError):
    """A time limit was reached in the middle of something; caught by the run."""


class PrecisionWarning(UserWarning):
    """Differences of values are too coarse to estimate gradients from."""


class MissingExtraError(DszogError, ImportError):
    """An optional dependency is needed and not installed."""


class SubproblemError(DszogError, RuntimeError):
    """A projection or a linear minimisation could not be solved."""


class EmptySetError(InputError):
    """No point satisfies all the constraints of a set."""
