"""What an evaluator answers, and whether it is an answer to what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from dszog.contract.arrays import FloatArray, all_finite, frozen_floats
from dszog.contract.query import Query
from dszog.errors import DszogError

_FLOAT = np.dtype(np.float64)
NO_GRADIENTS = frozen_floats(np.empty((0, 0)))


@dataclass(frozen=True, kw_only=True)
class Failure:
    """A value that a user's function did not give."""

    kind: str  # "exception", "not finite", "wrong shape", "worker lost", "timeout"
    what: str  # "loss", "constraint", or the gradient of one
    index: int  # of the first such loss or constraint
    iteration: int  # NO_ITERATION in the check of a result
    x: FloatArray  # the point
    message: str
    error: BaseException | None = None  # what the function raised


class Reply(NamedTuple):
    """The answer to one query: a row per point, a column per index.

    Parameters
    ----------
    losses : ndarray of shape (k + 1, n_indices)
    constraints : ndarray of shape (k + 1, n_indices)
    loss_gradients, jacobian : ndarray of shape (n_indices, dim)
        Gradients at ``x`` for a query that wants them; empty otherwise.
    failures : tuple of Failure
        What went wrong. Values that are not known are `nan`, and only then.
    """

    losses: FloatArray
    constraints: FloatArray
    loss_gradients: FloatArray = NO_GRADIENTS
    jacobian: FloatArray = NO_GRADIENTS
    failures: tuple[Failure, ...] = ()


def check_replies(
    iteration: int,
    queries: Sequence[Query],
    replies: Sequence[Reply],
    n_expected: int,
    *,
    check_values: bool = True,
) -> None:
    """Refuse replies that do not fit the queries of this iteration.

    Methods call this first in ``tell``: a state must never take in an answer to another
    question, a wrong shape, or a value that is not a finite number. Without
    `check_values` the last is left to the caller.
    """
    if len(queries) != n_expected:
        raise DszogError(
            f"tell: this state asks {n_expected} queries, got {len(queries)}. Tell the "
            "answers to all of ask(state), in their order."
        )
    if len(queries) != len(replies):
        raise DszogError(
            f"tell: {len(queries)} queries need {len(queries)} replies, "
            f"got {len(replies)}. Pass the replies in the order of the queries."
        )
    for query, reply in zip(queries, replies, strict=True):
        n_points = len(query.steps) + 1
        n_losses, n_constraints = len(query.losses), len(query.constraints)
        if (
            not check_values
            and query.iteration == iteration
            and query.want == "values"
            and type(reply) is Reply
        ):
            losses, constraints = reply.losses, reply.constraints
            if (
                type(losses) is type(constraints) is np.ndarray
                and losses.dtype is constraints.dtype is _FLOAT
                and losses.shape == (n_points, n_losses)
                and constraints.shape == (n_points, n_constraints)
            ):
                continue
        if query.iteration != iteration:
            raise DszogError(
                f"tell: the state is at iteration {iteration}, the query was asked at "
                f"{query.iteration}. Tell the answers to ask(state) of this very state."
            )
        if not isinstance(reply, Reply):
            raise DszogError(
                f"tell: a reply must be a dszog.Reply, got {type(reply).__name__}. "
                "Make one for each query: Reply(losses=..., constraints=...)."
            )
        _check_array("losses", reply.losses, (n_points, n_losses))
        _check_array("constraints", reply.constraints, (n_points, n_constraints))
        if query.want == "gradients":
            dim = len(query.x)
            _check_array("loss_gradients", reply.loss_gradients, (n_losses, dim))
            _check_array("jacobian", reply.jacobian, (n_constraints, dim))


def _check_array(name: str, array: FloatArray, shape: tuple[int, ...]) -> None:
    if type(array) is not np.ndarray or array.dtype.kind not in "fiub":
        raise DszogError(
            f"tell: reply.{name} must be a NumPy array of real numbers, got "
            f"{type(array).__name__}{_kind_of(array)}. Convert it: np.asarray(values, "
            "dtype=float); of a masked array, fill in what is missing first."
        )
    if 0 in shape and not array.size:
        return
    if array.shape != shape:
        raise DszogError(
            f"tell: reply.{name} must have shape {shape}, got {array.shape}. "
            "One row per point, one column per index of the query."
        )
    if not all_finite(array):
        raise DszogError(
            f"tell: reply.{name} holds a value that is not finite. "
            "Tell finite values only; leave a failed query untold and ask again."
        )


def _kind_of(array: object) -> str:
    return f" of {array.dtype}" if isinstance(array, np.ndarray) else ""
