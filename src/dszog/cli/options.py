"""Options that several commands take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from cyclopts import Parameter, Token

from dszog.cli.settings import whole


def _count(kind: Any, tokens: Sequence[Token]) -> int:
    """Read a number of things, which may be written 1e6."""
    (token,) = tokens
    return whole(token.value)


COUNT = Parameter(converter=_count)
Count: TypeAlias = Annotated[int, COUNT]
OptionalCount: TypeAlias = Annotated[int | None, COUNT]
Flag: TypeAlias = Annotated[bool, Parameter(negative="", show_default=False)]
Many: TypeAlias = Annotated[
    tuple[str, ...],
    Parameter(negative="", consume_multiple=False, show_default=False),
]
OUTPUT = Parameter(name=("--output", "-o"))
OutputFolder: TypeAlias = Annotated[Path, OUTPUT]
OutputFile: TypeAlias = Annotated[Path | None, OUTPUT]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Budget:
    """How far a run may go, and when it is a success."""

    max_queries: OptionalCount = None
    """Most values of losses and constraints to evaluate, together."""
    max_iterations: OptionalCount = None
    """Most iterations; 2000 if no limit is given."""
    max_time: float | None = None
    """Time limit, in seconds."""
    constraint_tol: float | None = None
    """Largest violation that may be left; 0.01 if not given."""


UNLIMITED = Budget()
