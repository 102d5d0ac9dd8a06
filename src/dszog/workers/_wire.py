"""Pieces of work and their answers as bytes: plain numbers and text, no objects.

Who receives them builds arrays and failures of them and can be made to do nothing else.
"""

from __future__ import annotations

import io
import json
import struct
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np

from dszog.contract import Failure, Query, Reply
from dszog.contract.arrays import FloatArray, frozen_floats
from dszog.errors import EvaluationError

_LENGTH = struct.Struct("<I")
MAX_TEXT = 20_000  # characters of a message or a traceback that travel


def pack_parts(parts: Sequence[Query]) -> bytes:
    """Return the parts of a piece as bytes."""
    header = [
        [
            *(p.iteration, p.purpose, p.want, len(p.steps) + 1, len(p.x)),
            *(len(p.losses), len(p.constraints)),
        ]
        for p in parts
    ]
    arrays = [a for p in parts for a in (p.known_points, p.losses, p.constraints)]
    return _packed(header, arrays)


def unpack_parts(message: bytes) -> list[Query]:
    """Return the parts that were packed."""
    header, take = _unpacked(message)
    return [
        Query.at_points(
            take(n_rows * dim, np.float64).reshape(n_rows, dim),
            iteration=iteration,
            purpose=purpose,
            want=want,
            losses=take(n_losses, np.int64),
            constraints=take(n_constraints, np.int64),
        )
        for iteration, purpose, want, n_rows, dim, n_losses, n_constraints in header
    ]


def pack_replies(replies: Sequence[Reply]) -> bytes:
    """Return the answer to a piece as bytes."""
    header, arrays = [], []
    for reply in replies:
        tables = _tables(reply)
        arrays += [*tables, *(failure.x for failure in reply.failures)]
        failures = [_as_text(failure) for failure in reply.failures]
        header.append([[table.shape for table in tables], failures])
    return _packed(header, arrays)


def unpack_replies(message: bytes) -> list[Reply]:
    """Return the answer that was packed."""
    header, take = _unpacked(message)
    return [_reply(shapes, failures, take) for shapes, failures in header]


def _reply(shapes: Any, failures: Any, take: Any) -> Reply:
    tables = [take(a * b, np.float64).reshape(a, b) for a, b in shapes]
    losses, constraints, loss_gradients, jacobian = map(frozen_floats, tables)
    return Reply(
        losses=losses,
        constraints=constraints,
        loss_gradients=loss_gradients,
        jacobian=jacobian,
        failures=tuple(_failure(text, take) for text in failures),
    )


def _tables(reply: Reply) -> tuple[FloatArray, ...]:
    return reply.losses, reply.constraints, reply.loss_gradients, reply.jacobian


def _as_text(failure: Failure) -> list[Any]:
    error = None
    if failure.error is not None:
        try:
            lines = traceback.format_exception(failure.error)
        except Exception:  # noqa: BLE001  (an exception of the user's may do anything)
            lines = [type(failure.error).__name__]
        error = "".join(lines)[-MAX_TEXT:]
    return [
        failure.kind,
        failure.what,
        failure.index,
        failure.iteration,
        len(failure.x),
        failure.message[:MAX_TEXT],
        error,
    ]


def _failure(text: Any, take: Any) -> Failure:
    kind, what, index, iteration, dim, message, error = text
    return Failure(
        kind=kind,
        what=what,
        index=index,
        iteration=iteration,
        x=frozen_floats(take(dim, np.float64)),
        message=message,
        error=None if error is None else EvaluationError(f"In a worker:\n{error}"),
    )


def _packed(header: Any, arrays: Sequence[Any]) -> bytes:
    text = json.dumps(header, separators=(",", ":")).encode()
    body = [np.ascontiguousarray(array).tobytes() for array in arrays]
    return b"".join([_LENGTH.pack(len(text)), text, *body])


def _unpacked(message: bytes) -> tuple[Any, Any]:
    """Return the header, and a function that takes the arrays out one by one."""
    (n,) = _LENGTH.unpack_from(message)
    start = _LENGTH.size + n
    header = json.loads(message[_LENGTH.size : start])
    body = io.BytesIO(message)
    body.seek(start)

    def take(count: int, kind: Any) -> Any:
        # A copy: bytes need not lie where numbers like to lie.
        return np.frombuffer(body.read(8 * count), dtype=kind).copy()

    return header, take
