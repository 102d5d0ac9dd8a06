"""What a journal holds: questions with their price, and the answers to them."""

from __future__ import annotations

import math
import struct
import sys
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from dszog.contract import Cost, Failure, Query, Reply
from dszog.contract.arrays import FloatArray, frozen_floats
from dszog.errors import CheckpointError
from dszog.save.container import dump_json, load_json

ASKED, ANSWERED, LOST = 1, 2, 3

_ASKED = struct.Struct("<Bqqqd")  # kind, losses, constraints, print of queries, elapsed
_ANSWERED = struct.Struct("<BddI")  # kind, elapsed, spent, number of replies
_LOST = struct.Struct("<Bq")  # kind, queries
_REPLY = struct.Struct("<8II")  # rows and columns of each array, length of failures
_NATIVE = sys.byteorder == "little"


@dataclass(frozen=True, slots=True)
class Asked:
    """Queries were about to be answered."""

    losses: int
    constraints: int
    question: int  # a print of the queries, negative in the check of a result
    elapsed: float

    @property
    def n_queries(self) -> int:
        return self.losses + self.constraints

    @property
    def in_check(self) -> bool:
        """Whether a result was looked at."""
        return self.question < 0


@dataclass(frozen=True, slots=True)
class Answered:
    elapsed: float
    spent: float
    replies: tuple[Reply, ...]


@dataclass(frozen=True, slots=True)
class Lost:
    """Queries that are used up and belong to no question."""

    n_queries: int


Record: TypeAlias = Asked | Answered | Lost


def question(queries: Sequence[Query]) -> int:
    """Return a print of queries: the same for the same, negative in a check."""
    crc = 0
    for query in queries:
        crc = zlib.crc32(query.x.data, crc)
        crc = zlib.crc32(query.losses.data, crc)
        crc = zlib.crc32(query.constraints.data, crc)
    if queries and queries[0].purpose == "final check":
        return -1 - crc
    iteration = queries[0].iteration if queries else 0
    return (iteration << 32 | crc) & (2**63 - 1)


def pack_asked(charged: Cost, asked: int, elapsed: float) -> bytes:
    return _ASKED.pack(ASKED, charged.losses, charged.constraints, asked, elapsed)


def pack_answered(replies: Sequence[Reply], spent: float, elapsed: float) -> bytes:
    pieces = [_ANSWERED.pack(ANSWERED, elapsed, spent, len(replies))]
    for reply in replies:
        failures = b""
        if reply.failures:
            failures = dump_json([failure_to_json(one) for one in reply.failures])
        first, second = reply.losses, reply.constraints
        third, fourth = reply.loss_gradients, reply.jacobian
        shapes = (*first.shape, *second.shape, *third.shape, *fourth.shape)
        pieces.append(_REPLY.pack(*shapes, len(failures)))
        pieces += [_raw(one) for one in (first, second, third, fourth) if one.size]
        pieces.append(failures)
    return b"".join(pieces)


def _raw(array: FloatArray) -> bytes:
    return array.tobytes() if _NATIVE else array.astype("<f8").tobytes()


def pack_lost(n_queries: int) -> bytes:
    return _LOST.pack(LOST, n_queries)


def unpack(content: bytes) -> Record:
    """Return a record, or raise if it cannot have been written by this module."""
    kind = content[0] if content else 0
    if kind == ASKED and len(content) == _ASKED.size:
        _, losses, constraints, asked, elapsed = _ASKED.unpack(content)
        if losses >= 0 and constraints >= 0 and elapsed >= 0.0:
            return Asked(losses, constraints, asked, elapsed)
    elif kind == LOST and len(content) == _LOST.size:
        (_, n_queries) = _LOST.unpack(content)
        if n_queries >= 0:
            return Lost(n_queries)
    elif kind == ANSWERED and len(content) >= _ANSWERED.size:
        return _Reader(content).answered()
    raise CheckpointError("a record of the journal makes no sense")


class _Reader:
    """Reads an answer from front to back, never further than it goes."""

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._place = 0

    def answered(self) -> Answered:
        _, elapsed, spent, n_replies = self._take(_ANSWERED)
        if not (0.0 <= elapsed < math.inf and 0.0 <= spent < math.inf):
            raise CheckpointError("a record of the journal makes no sense")
        replies: list[Reply] = []
        while len(replies) < n_replies:
            *shapes, length = self._take(_REPLY)
            arrays = [self._array(shapes[i : i + 2]) for i in range(0, 8, 2)]
            text = self._bytes(length)
            failures = load_json(text) if length else []
            if not isinstance(failures, list):
                raise CheckpointError("a record of the journal makes no sense")
            replies.append(
                Reply(
                    losses=arrays[0],
                    constraints=arrays[1],
                    loss_gradients=arrays[2],
                    jacobian=arrays[3],
                    failures=tuple(failure_from_json(one) for one in failures),
                )
            )
        if self._place != len(self._content):
            raise CheckpointError("a record of the journal is too long")
        return Answered(elapsed, spent, tuple(replies))

    def _take(self, form: struct.Struct) -> tuple[Any, ...]:
        return form.unpack(self._bytes(form.size))

    def _bytes(self, length: int) -> bytes:
        piece = self._content[self._place : self._place + length]
        if len(piece) != length:
            raise CheckpointError("a record of the journal is too short")
        self._place += length
        return piece

    def _array(self, shape: list[int]) -> FloatArray:
        piece = self._bytes(8 * math.prod(shape))
        return frozen_floats(np.frombuffer(piece, dtype="<f8").reshape(shape))


# ----------------------------------------------------------------------- failed values


def failure_to_json(failure: Failure) -> dict[str, Any]:
    """Return a failure without the exception itself, which cannot be kept."""
    return {
        "kind": failure.kind,
        "what": failure.what,
        "index": int(failure.index),
        "iteration": int(failure.iteration),
        "x": [float(entry).hex() for entry in failure.x],
        "message": failure.message,
    }


def failure_from_json(found: Any) -> Failure:
    try:
        texts = {name: found[name] for name in ("kind", "what", "message")}
        numbers = {name: found[name] for name in ("index", "iteration")}
        x = frozen_floats([float.fromhex(entry) for entry in found["x"]])
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise CheckpointError("a failure in it makes no sense") from error
    if not all(isinstance(text, str) for text in texts.values()) or not all(
        type(number) is int for number in numbers.values()
    ):
        raise CheckpointError("a failure in it makes no sense")
    return Failure(x=x, **texts, **numbers)
