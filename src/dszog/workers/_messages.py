"""Pieces of work and their answers as bytes: plain numbers and text, no objects.

A message is a tree of JSON, with the shape of each array in its place, and then the
numbers of the arrays. Who receives it builds arrays, parts, replies and failures of it
and can be made to do nothing else.
"""

from __future__ import annotations

import json
import math
import struct
import traceback
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from dszog.contract import Failure, Query, Reply
from dszog.contract.arrays import freeze
from dszog.errors import EvaluationError

_LENGTH = struct.Struct("<I")
_KINDS = {"f": np.dtype(np.float64), "i": np.dtype(np.int64)}
FAILURE = tuple(item.name for item in fields(Failure))
MAX_TEXT = 20_000  # characters of a message or a traceback that travel


def pack_parts(parts: Sequence[Query]) -> bytes:
    return _pack(
        [
            [p.known_points, p.iteration, p.purpose, p.want, p.losses, p.constraints]
            for p in parts
        ]
    )


def unpack_parts(message: bytes) -> list[Query]:
    return [
        Query.at_points(
            points,
            iteration=iteration,
            purpose=purpose,
            want=want,
            losses=losses,
            constraints=constraints,
        )
        for points, iteration, purpose, want, losses, constraints in _unpack(message)
    ]


def pack_answer(replies: Sequence[Reply], seconds: float) -> bytes:
    return _pack([seconds, *replies])


def unpack_answer(message: bytes) -> tuple[list[Reply], float]:
    seconds, *replies = _unpack(message)
    return [
        Reply._make((*tables, tuple(_failure(*fields) for fields in failures)))
        for *tables, failures in replies
    ], seconds


def _failure(*fields: Any) -> Failure:
    found = Failure(**dict(zip(FAILURE, fields, strict=True)))
    if found.error is None:
        return found
    return replace(found, error=EvaluationError(f"In a worker:\n{found.error}"))


def _pack(tree: Any) -> bytes:
    arrays: list[bytes] = []

    def plain(value: Any) -> Any:
        """Return an array as its shape, a failure as its fields, an error as text."""
        if isinstance(value, np.ndarray):
            arrays.append(value.tobytes())
            return {value.dtype.kind: value.shape}
        if isinstance(value, Failure):
            made = [getattr(value, name) for name in FAILURE]
            return [one[:MAX_TEXT] if isinstance(one, str) else one for one in made]
        try:
            lines = traceback.format_exception(value)
        except Exception:  # noqa: BLE001  (an exception of the user's may do anything)
            lines = [type(value).__name__]
        return "".join(lines)[-MAX_TEXT:]

    text = json.dumps(tree, default=plain, separators=(",", ":")).encode()
    return b"".join([_LENGTH.pack(len(text)), text, *arrays])


def _unpack(message: bytes) -> Any:
    place = _LENGTH.size + _LENGTH.unpack_from(message)[0]
    text = message[_LENGTH.size : place]

    def array_of(found: dict[str, Any]) -> Any:
        nonlocal place
        ((kind, shape),) = found.items()
        start, place = place, place + 8 * math.prod(shape)
        # A copy: bytes need not lie where numbers like to lie.
        numbers = np.frombuffer(message[start:place], dtype=_KINDS[kind])
        return freeze(numbers.reshape(shape).copy())

    return json.loads(text, object_hook=array_of)
