"""Every exception this library raises on purpose.

A message has three parts: what is wrong, what was given, and what to do about it.
"""

from __future__ import annotations

from typing import Any


class DszogError(Exception):
    """Base of all errors raised by dszog."""


class InputError(DszogError, ValueError):
    """An argument has the right type and a value that cannot work."""


class InputTypeError(DszogError, TypeError):
    """An argument has a type that cannot work."""


class EvaluationError(DszogError, RuntimeError):
    """A user function failed, or returned something that is not usable values.

    Out of `minimize` it carries the ``result`` so far, whose point is not checked, and
    the point ``x`` at which the function was called.
    """

    result: Any = None
    x: Any = None


class WrongCountError(EvaluationError):
    """A simulator returned another number of limits than it was said to."""


class OutOfTimeError(DszogError):
    """A time limit was reached in the middle of something; caught by the run."""


class PrecisionWarning(UserWarning):
    """Differences of values are too coarse to estimate gradients from."""


class PurityWarning(UserWarning):
    """A function gave different values for the same question."""


class StartWarning(UserWarning):
    """The start was moved into the bounds."""


class MissingExtraError(DszogError, ImportError):
    """An optional dependency is needed and not installed."""

    @classmethod
    def of(cls, owner: str, needed: str | None, extra: str) -> MissingExtraError:
        """Return the error that says who needs what, and how to get it.

        Examples
        --------
        >>> print(MissingExtraError.of("to_frame", "pandas", "pandas"))
        to_frame needs pandas: pip install "dszog[pandas]".
        """
        return cls(f'{owner} needs {needed}: pip install "dszog[{extra}]".')


class SubproblemError(DszogError, RuntimeError):
    """A projection or a linear minimisation could not be solved."""


class EmptySetError(InputError):
    """No point satisfies all the constraints of a set."""


class CheckpointError(DszogError):
    """A checkpoint cannot be used: damaged, of another problem, or in use."""


class OtherRunError(CheckpointError, InputError):
    """A folder of checkpoints holds another run than the one that was asked for."""


class CheckpointWriteError(CheckpointError):
    """A checkpoint could not be written.

    It carries the ``result`` so far, whose point is not checked.
    """

    result: Any = None


class CheckpointWarning(UserWarning):
    """A checkpoint was not as expected, and the run goes on all the same."""
