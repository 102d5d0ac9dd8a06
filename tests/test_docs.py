"""Every block of Python in the documentation runs, and prints what it says it prints.

The blocks of a page share one namespace, as they do for a reader who types along.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import pkgutil
import re
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import pytest

import dszog
from dszog.run.failures import FailureReport
from tests.pages import PAGES, README, ROOT, name_of, python_blocks, typed_lines

MOST_NOT_RUN = 3  # blocks that need what a test cannot have, such as a cluster
PAGE_NEEDS = {"dszog.learn": "sklearn"}  # a page that has these words, throughout
BLOCK_NEEDS = {  # a block that has these words
    "matplotlib": "matplotlib",
    ".plot(": "matplotlib",
    "to_frame()": "pandas",
    "dask": "distributed",
}
DESCRIBED_ONCE = ("init", "ask", "tell")  # where the contract is
PAGES_WITH_CODE = [page for page in PAGES if python_blocks(page)]


@pytest.mark.timeout(120)
@pytest.mark.parametrize("page", PAGES_WITH_CODE, ids=name_of)
def test_the_blocks_of_a_page_run_and_print_what_they_say(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = [block for block in python_blocks(page) if not block.reason_not_to_run]
    missing = _missing(PAGE_NEEDS, "".join(block.text for block in blocks))
    if missing:
        pytest.skip(f"needs {missing}")
    monkeypatch.chdir(tmp_path)
    logger = logging.getLogger("dszog")
    monkeypatch.setattr(logger, "level", logger.level)  # a block may set it
    printed: list[tuple[int, str]] = []

    def record(*values: object, sep: str = " ", **_: object) -> None:
        printed.append((sys._getframe(1).f_lineno, sep.join(map(str, values))))

    module = ModuleType("page")
    monkeypatch.setitem(sys.modules, "page", module)  # dataclasses look there
    namespace = vars(module)
    namespace["print"] = record
    for block in blocks:
        if _missing(BLOCK_NEEDS, block.text):
            continue
        printed.clear()
        exec(block.compiled(), namespace)
        promised = block.promised_output()
        assert {line: text for line, text in printed if line in promised} == promised
        if block.shown_output is not None:
            assert "\n".join(text for _, text in printed) == block.shown_output.strip()


def _missing(needs: dict[str, str], text: str) -> list[str]:
    """Return the packages that this code needs and that are not installed."""
    return [
        package
        for words, package in needs.items()
        if words in text and importlib.util.find_spec(package) is None
    ]


def test_hardly_any_block_is_not_run_and_each_says_why() -> None:
    reasons = [
        block.reason_not_to_run
        for page in [*PAGES, README]
        for block in python_blocks(page)
        if block.reason_not_to_run
    ]
    assert len(reasons) <= MOST_NOT_RUN
    assert all(len(reason) > 10 for reason in reasons)


def test_every_fence_of_python_is_found() -> None:
    # A fence that is written differently would not be run.
    for page in [*PAGES, README]:
        fences = re.findall(r"^\s*[`~]{3,}.*py(?:thon|con)?\b", page.read_text(), re.M)
        assert len(fences) == len(python_blocks(page)), page.name


def test_no_page_is_left_unfinished() -> None:
    for page in PAGES:
        assert "@@" not in page.read_text("utf-8"), page.name


@pytest.mark.parametrize("page", [*PAGES, README], ids=name_of)
def test_the_names_that_a_page_points_to_exist(page: Path) -> None:
    for name in re.findall(r"`(dszog(?:\.\w+)+)", page.read_text("utf-8")):
        if name.startswith("dszog.learn"):
            pytest.importorskip("sklearn")
        if name.startswith("dszog.torch") and find_spec("torch") is None:
            continue  # `make torch` has it
        pkgutil.resolve_name(name)


@pytest.mark.parametrize(
    "start",
    [
        "The iterates ran away",
        "The point is feasible but not shown to be optimal",
        "The objective falls on, and no constraint is in its way",
        "The iterates ran away and the run was stopped.",
        "The penalty was raised from",
        "Neither the last iterate nor the average was better than",
        "The start was moved to the nearest feasible point.",
        "This is the result of the run in",
        "No x0 was given: the run began at the origin",
    ],
)
def test_what_a_message_tells_of_the_run_is_explained(start: str) -> None:
    modules = (ROOT / "src/dszog").rglob("*.py")
    assert any(start in module.read_text("utf-8") for module in modules)
    assert f'| "{start}' in (ROOT / "docs/watching.md").read_text("utf-8")


def test_the_pages_say_what_leaving_failures_out_does_to_an_estimate() -> None:
    words = " ".join((ROOT / "docs/constraints.md").read_text("utf-8").split())
    assert "is then conditional on success" in words
    assert "`result.failures.rate` is the share of points that failed" in words
    assert isinstance(FailureReport.rate, property)


def test_every_public_name_is_in_the_reference() -> None:
    reference = (ROOT / "docs/api/index.md").read_text()
    listed = set(re.findall(r"^(?:   |\.\. py:data:: )([\w.~]+)$", reference, re.M))
    modules = set(re.findall(r"^\.\. currentmodule:: ([\w.]+)$", reference, re.M))
    missing = {
        name
        for name in set(dszog.__all__) - listed
        if getattr(getattr(dszog, name), "__name__", "") not in modules
    }
    assert not missing, "add them to docs/api/index.md, under the heading that fits"


def test_every_name_in_the_reference_is_described() -> None:
    reference = (ROOT / "docs/api/index.md").read_text()
    module = dszog.__name__
    for now, name in re.findall(
        r"^(?:\.\. currentmodule:: ([\w.]+)|   ~?([\w.]+))$", reference, re.M
    ):
        module = now or module
        if module == "dszog.learn":
            pytest.importorskip("sklearn")
        found = pkgutil.resolve_name(f"{module}.{name}" if name else module)
        assert found.__doc__, found
        for part, member in vars(found).items() if isinstance(found, type) else ():
            is_own = callable(member) or isinstance(member, (property, classmethod))
            undescribed = part[0] == "_" or part in DESCRIBED_ONCE or not is_own
            assert undescribed or inspect.getdoc(getattr(found, part)), (found, part)


def test_every_method_and_kind_is_in_the_table_to_choose_from() -> None:
    methods = (ROOT / "docs" / "choosing.md").read_text(encoding="utf-8")
    kinds = (ROOT / "docs" / "constraints.md").read_text(encoding="utf-8")
    ways = [n for n, it in vars(dszog.Constraints).items() if type(it) is classmethod]
    no_row = [name for name in dszog.METHODS if f"\n| `{name}` |" not in methods]
    assert not no_row, f"without a row in docs/choosing.md: {no_row}"
    no_row = [name for name in ways if f"`Constraints.{name}" not in kinds]
    assert not no_row, f"without a row in docs/constraints.md: {no_row}"


def test_every_page_is_in_the_contents() -> None:
    contents = (ROOT / "docs/index.md").read_text()
    blocks = re.findall(r"```\{toctree\}\n(.*?)```", contents, re.S)
    entries = [line for block in blocks for line in block.splitlines()]
    for page in sorted((ROOT / "docs").glob("[!_]*.md")):
        assert page.name == "index.md" or any(
            Path(page.stem).match(entry) for entry in entries if entry
        ), page.name


@pytest.mark.parametrize("page", [*PAGES, README], ids=name_of)
def test_the_targets_and_extras_that_a_page_names_exist(page: Path) -> None:
    text = page.read_text("utf-8")
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.M))
    typed = [line.split() for line in typed_lines(page) if line.startswith("make ")]
    named = {word for line in typed for word in line[1:2] if re.match("[a-z-]+$", word)}
    named |= set(re.findall(r"`make ([a-z-]+)", text))
    assert named <= targets
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = re.findall(r'pip install "(?:dszog|\.)\[([\w,]+)\]"', text)
    extras = {name for names in asked for name in names.split(",")}
    assert extras <= set(project["optional-dependencies"])
