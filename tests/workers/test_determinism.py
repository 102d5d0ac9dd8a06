"""One seed, one digest: whoever evaluates, however many they are, whatever happens.

The matrix is the product of the registry of evaluators, the numbers of workers and the
kinds of problems; a new evaluator adds its cells by being listed.
"""

from __future__ import annotations

import itertools
from functools import cache
from typing import Any

import pytest

import dszog
from dszog import EVALUATORS
from tests.runs import said_by
from tests.workers.helpers import PROBLEMS, SOLVED_BY, digest, need, solve, workers

COUNTS = (1, 2, 3, 8)
QUICK = {"serial": (1,), "threads": (1, 3), "processes": (2,)}


@cache
def expected(problem: str, method: str = "dszog") -> str:
    return digest(solve(PROBLEMS[problem](), method=method))


def test_every_evaluator_is_in_the_matrix() -> None:
    cells = list(itertools.product(EVALUATORS, COUNTS, PROBLEMS))
    assert len(cells) == len(EVALUATORS) * 4 * 5 >= 100
    assert set(QUICK) <= set(EVALUATORS)
    for name in EVALUATORS:
        assert workers(name, 2) is not None


@pytest.mark.filterwarnings("ignore")  # of clusters
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize(
    ("name", "n"),
    [
        pytest.param(
            *(name, n), marks=[] if n in QUICK.get(name, ()) else pytest.mark.slow
        )
        for name, n in itertools.product(EVALUATORS, COUNTS)
    ],
)
def test_there_is_one_digest_for_all_workers(
    team: Any, name: str, n: int, problem: str
) -> None:
    need(name)
    for method in SOLVED_BY:
        found = digest(solve(PROBLEMS[problem](), team(name, n), method))
        assert found == expected(problem, method)


SCRIPT = """
from tests.workers.helpers import PROBLEMS, digest, solve
print(*(digest(solve(PROBLEMS[name](), "{evaluator}")) for name in PROBLEMS))
"""


@pytest.mark.parametrize(
    "evaluator", ["serial", pytest.param("processes", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize(("threads", "seed"), [("1", "1"), ("2", "77")])
def test_threads_of_libraries_and_the_hash_seed_change_nothing(
    evaluator: str, threads: str, seed: str
) -> None:
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
    more = dict.fromkeys(names, threads) | {"PYTHONHASHSEED": seed}
    said = said_by("-c", SCRIPT.format(evaluator=evaluator), **more)
    assert said.split() == [expected(name) for name in PROBLEMS]


@pytest.mark.parametrize("name", ["threads", "processes"])
def test_a_certificate_is_the_same_for_all_evaluators(name: str) -> None:
    problem = PROBLEMS["plain"]()
    alone = dszog.certify(problem, [0.1, 0.2, 0.3])
    found = dszog.certify(problem, [0.1, 0.2, 0.3], evaluator=name)
    assert str(found) == str(alone)
