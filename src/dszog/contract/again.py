"""Asking again for what a function did not give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dszog.contract.query import Query, no_steps
from dszog.contract.reply import Reply
from dszog.contract.size import ProblemSize


class Part(NamedTuple):
    """What gave no value at one point, as a query, and where it belongs."""

    place: int  # of the reply
    row: int  # of the point in it
    query: Query


def unknown_parts(
    queries: Sequence[Query], replies: Sequence[Reply], size: ProblemSize
) -> list[Part]:
    """Return all values that are not known, point by point."""
    parts = []
    for place, (query, reply) in enumerate(zip(queries, replies, strict=True)):
        if not reply.failures or query.want != "values":
            continue
        points = query.points(size)
        losses, rows = np.isnan(reply.losses), np.isnan(reply.constraints)
        for row in np.flatnonzero(losses.any(axis=1) | rows.any(axis=1)).tolist():
            wanted = query._replace(
                x=points[row],
                steps=no_steps(size.dim),
                losses=query.losses[losses[row]],
                constraints=query.constraints[rows[row]],
                paired=False,
            )
            parts.append(Part(place, row, wanted))
    return parts


def filled(
    replies: Sequence[Reply], parts: Sequence[Part], answers: Sequence[Reply]
) -> list[Reply]:
    """Return the replies with what was found in the place of what was not known."""
    places = {part.place for part in parts}
    made = [
        reply._replace(
            losses=np.array(reply.losses),
            constraints=np.array(reply.constraints),
            failures=(),
        )
        if place in places
        else reply
        for place, reply in enumerate(replies)
    ]
    for (place, row, _), answer in zip(parts, answers, strict=True):
        for table, values in (
            (made[place].losses, answer.losses),
            (made[place].constraints, answer.constraints),
        ):
            table[row, np.isnan(table[row])] = values[0]
        failures = (*made[place].failures, *answer.failures)
        made[place] = made[place]._replace(failures=failures)
    return made
