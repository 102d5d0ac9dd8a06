"""How the paper divides its data: half to train, three tenths to test, the rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dszog._random import stream
from dszog._validation import check_count, check_seed
from dszog.errors import InputError
from dszog_paper.data.samples import Samples

SPLIT = 3
"""Purpose of the draws that divide data."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """The three parts of a data set. No row is in two of them."""

    train: Samples
    validation: Samples
    test: Samples


def paper_split(
    samples: Samples,
    *,
    seed: int,
    repetition: int = 0,
    n_samples: int | None = None,
) -> Split:
    """Divide data as the paper does: 50 % train, 30 % test, 20 % validation.

    Rows are drawn without replacement and not by class. Both classes must be in each
    part, and both values of each sensitive column: else the error names what is
    missing.

    Parameters
    ----------
    samples : Samples
        The data.
    seed, repetition : int
        The same pair always gives the same split, whatever the method.
    n_samples : int, optional
        How many rows to use. The paper draws 1000 of a9a, w8a and svmguide3.

    Examples
    --------
    >>> from dszog_paper.data import generate
    >>> split = paper_split(generate("gen", seed=1), seed=1, n_samples=100)
    >>> split.train.n_rows, split.test.n_rows, split.validation.n_rows
    (50, 30, 20)
    """
    owner = "paper_split"
    n = samples.n_rows if n_samples is None else n_samples
    n = check_count(owner, "n_samples", n, least=10, advice="Pass 10 rows or more.")
    if n > samples.n_rows:
        raise InputError(
            f"{owner}: `n_samples` must be at most {samples.n_rows}, the rows of "
            f"{samples.name}, got {n}. Pass a smaller number."
        )
    seed = check_seed(owner, seed)
    turn = check_count(owner, "repetition", repetition, least=0)
    order = stream(seed, turn, purpose=SPLIT).permutation(samples.n_rows)[:n]
    # Whole numbers: 0.5 * n and 0.3 * n would round differently from n to n.
    train, test, validation = np.split(order, [n // 2, n // 2 + 3 * n // 10])
    suffix = f"(seed {seed}, repetition {turn})"
    return Split(
        train=samples.take(train, f"{samples.name}, training split {suffix}"),
        validation=samples.take(
            validation, f"{samples.name}, validation split {suffix}"
        ),
        test=samples.take(test, f"{samples.name}, test split {suffix}"),
    )
