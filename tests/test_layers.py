"""Imports point one way, and some things are not done at all: read from the source.

The order is that of ``CONTRIBUTING.md``: each line of `LAYERS` may import the lines
above it.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from importlib.util import resolve_name
from pathlib import Path

import pytest

import dszog

SOURCE = Path(dszog.__file__).parent

# ------------------------------------------------------------------------- the layers

LAYERS: tuple[set[str], ...] = (
    {"errors", "status", "_log", "_version"},
    {"contract"},
    {"kernels"},
    {"maths"},
    {"methods", "problem"},  # neither sees the other
    {"evidence"},
    {"run"},
    {"save", "workers", "show", "readers"},
    {"minimize", "certify"},
    {"learn", "torch"},
    {"__init__"},
    {"cli"},
    {"__main__"},
)
PLACES = {part: i for i, layer in enumerate(LAYERS) for part in layer}
UPWARDS = {  # what looks up all the same, and why
    ("dszog.run.result", "show"),  # a result draws and saves itself, when told to
    ("dszog.run.result", "save"),
}

PACKAGES = {"dszog_paper", "dszog_bench", "dszog_start"}  # beside the library
HARD_DEPENDENCIES = {"numpy", "scipy"}
OPTIONAL = {  # extras: at the top of a module where True, else inside a function
    "cli": ({"cyclopts", "rich", "matplotlib", "sklearn", *PACKAGES}, True),
    "learn": ({"sklearn", "pandas"}, True),
    "show.progress": ({"rich", "ipywidgets"}, True),
    "show.plot": ({"matplotlib"}, True),
    "run.result": ({"matplotlib", "pandas"}, False),
    "kernels": ({"numba", "llvmlite"}, True),
    "torch": ({"torch", "safetensors", "triton"}, True),
    "workers": ({"dask", "distributed", "ray", "cloudpickle"}, False),
}
PURE = {"contract", "maths", "methods", "evidence"}
CLOCKS = {"time", "datetime"}
UNSAFE = {"pickle", "marshal", "shelve", "joblib", "dill", "cloudpickle", "random"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__"}
SENDS_FUNCTIONS = "dszog.workers._worker"  # to workers the user asked for
FORKS = "dszog.workers._fork_server"  # workers that must not share one random state
READING = {"readers", "save"}  # of anybody's files
UNSAFE_IN_READING = {
    *("ast", "builtins", "code", "codeop", "copyreg", "ctypes", "http", "imp"),
    *("importlib", "multiprocessing", "pkgutil", "runpy", "shutil", "socket", "ssl"),
    *("sqlite3", "subprocess", "tarfile", "tempfile", "tomllib", "urllib", "xml"),
    *("yaml", "zipfile"),
}
UNSAFE_ATTRIBUTES = {
    *("os.system", "os.popen", "os.execv", "os.execve", "os.spawnv", "os.fork"),
    *("os.posix_spawn", "np.load", "np.loadtxt", "np.genfromtxt", "np.fromfile"),
    *("np.memmap", "numpy.load", "json.load", "sys.modules", "yaml.load"),
    *("joblib.load", "torch.load", "pandas.read_pickle"),
}
HARMLESS = {"__name__", "__version__", "__lt__"}
UNSAFE_IN_READING_CALLS = {"getattr", "setattr", "globals", "vars", "open", "input"}
ALLOWED_IN_READING = {  # calls of these by module; what they are for
    "dszog.readers.content": {"open", "getattr"},  # the named file; an error's reason
    "dszog.save.encoding": {"getattr"},  # fields of listed types, by our names
    "dszog.save.state_file": {"getattr"},  # likewise
}
RANDOM_TYPES = {"Generator", "Philox", "SeedSequence", "BitGenerator"}


# ----------------------------------------------------------------- reading the source
@dataclass(frozen=True)
class Import:
    """One import statement of one name."""

    importer: str  # "dszog.methods.base"
    imported: str  # "dszog.contract", "numpy"
    line: int
    at_import: bool  # neither inside a function nor under TYPE_CHECKING


@dataclass(frozen=True)
class Module:
    name: str  # "dszog.methods.base"
    is_package: bool
    tree: ast.Module

    @property
    def part(self) -> str:
        return part_of(self.name)


def part_of(name: str) -> str:
    """Return the place of a module in the table: the name below ``dszog``."""
    return name.split(".")[1] if "." in name else "__init__"


def modules_under(root: Path) -> list[Module]:
    modules = []
    for path in sorted(root.rglob("*.py")):
        parts = ("dszog", *path.relative_to(root).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        tree = ast.parse(path.read_text(encoding="utf-8"))
        modules.append(Module(name, is_package, tree))
    return modules


def imports_of(module: Module, known: set[str]) -> Iterator[Import]:
    package = module.name if module.is_package else module.name.rpartition(".")[0]

    def visit(node: ast.AST, at_import: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = at_import
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                inside = False
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
                inside = False
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(module.name, alias.name, child.lineno, inside)
            elif isinstance(child, ast.ImportFrom):
                base = resolve_name("." * child.level + (child.module or ""), package)
                for alias in child.names:
                    full = f"{base}.{alias.name}"
                    name = full if full in known else base
                    yield Import(module.name, name, child.lineno, inside)
            yield from visit(child, inside)

    yield from visit(module.tree, at_import=True)


# -------------------------------------------------------------------------- the rules
def complaints(root: Path) -> list[str]:
    """Return what is wrong with the source under a folder, one line for each."""
    modules = modules_under(root)
    known = {module.name for module in modules}
    found = [item for module in modules for item in imports_of(module, known)]
    return [
        *(text for module in modules for text in _wrong_place(module)),
        *(text for item in found for text in _wrong_import(item)),
        *(text for module in modules for text in _wrong_deeds(module)),
        *(text for module in modules for text in _wrong_reading(module)),
        *_cycles(found, known),
    ]


def _wrong_place(module: Module) -> Iterator[str]:
    if module.part not in PLACES:
        yield f"{module.name} has no place in the layers: give it one in LAYERS"


def _wrong_import(item: Import) -> Iterator[str]:
    where = f"{item.importer}, line {item.line}"
    part, top = part_of(item.importer), item.imported.split(".")[0]
    if top == "dszog":
        target = part_of(item.imported)
        if not _looks_down(item.importer, part, target):
            said = "dszog itself, but from its modules"
            what = said if target == "__init__" else target
            yield f"{where}: {part} must not import {what}"
    elif top in PACKAGES:
        if part != "cli":
            yield f"{where}: only the command line may import {top}"
    elif top in {"pickle", "cloudpickle"} and item.importer == SENDS_FUNCTIONS:
        return
    elif top in UNSAFE or (top == "importlib" and part != "cli"):
        yield f"{where}: {top} must not be imported"
    elif top in CLOCKS and part in PURE:
        yield f"{where}: {part} must not read a clock ({top})"
    elif top not in sys.stdlib_module_names | HARD_DEPENDENCIES:
        extras, at_the_top = _extras_of(item.importer)
        if top not in extras:
            yield f"{where}: {part} must not need {top}"
        elif item.at_import and not at_the_top:
            yield f"{where}: {top} is optional: import it where it is used"


def _looks_down(importer: str, part: str, target: str) -> bool:
    """Whether a module may import a part of the library."""
    if target == part or PLACES.get(target, 99) < PLACES.get(part, 99):
        return True
    return any(
        target == up and f"{importer}.".startswith(f"{name}.") for name, up in UPWARDS
    )


def _extras_of(importer: str) -> tuple[set[str], bool]:
    """Return the extras that a module may import, and whether at its top."""
    for name, extras in OPTIONAL.items():
        if f"{importer}.".startswith(f"dszog.{name}."):
            return extras
    return set(), False


def _wrong_deeds(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        where = f"{module.name}, line {getattr(node, 'lineno', 0)}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            if node.func.id in UNSAFE_CALLS:
                yield f"{where}: {node.func.id}() must not be called"
            if node.func.id == "print" and module.part != "cli":
                yield f"{where}: print() belongs to the command line"
        if isinstance(node, ast.keyword) and node.arg == "allow_pickle":
            yield f"{where}: allow_pickle must not be used"
        if isinstance(node, ast.Assert):
            yield f"{where}: a bare assert is no check"
        if isinstance(node, ast.Attribute) and node.attr not in RANDOM_TYPES:
            owner = ast.unparse(node.value)
            allowed = module.part == "cli" or module.name == FORKS
            if owner in ("np.random", "numpy.random") and not allowed:
                yield f"{where}: {owner}.{node.attr} is not stream(seed, iteration)"
        if isinstance(node, ast.ImportFrom) and node.module == "numpy.random":
            for alias in node.names:
                if alias.name not in RANDOM_TYPES:
                    yield f"{where}: numpy.random.{alias.name} must not be imported"


def _wrong_reading(module: Module) -> Iterator[str]:
    """Complain about whatever could run code in a module that reads files."""
    if module.part not in READING:
        return
    allowed = ALLOWED_IN_READING.get(module.name, set())
    for node in ast.walk(module.tree):
        where = f"{module.name}, line {getattr(node, 'lineno', 0)}"
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names]
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            for name in names:
                if name.split(".")[0] in UNSAFE_IN_READING:
                    yield f"{where}: a reader must not import {name}"
        if isinstance(node, ast.Attribute):
            name = ast.unparse(node)
            hidden = node.attr.startswith("__") and node.attr not in HARMLESS
            if name in UNSAFE_ATTRIBUTES or hidden:
                yield f"{where}: a reader must not use {name}"
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            called = node.func.id
            if called in UNSAFE_IN_READING_CALLS - allowed:
                yield f"{where}: a reader must not call {called}()"


def _cycles(found: list[Import], known: set[str]) -> Iterator[str]:
    """Complain about modules that need each other in order to be imported."""
    needs: dict[str, set[str]] = {name: set() for name in known}
    for item in found:
        if item.at_import and item.imported in known:
            needs[item.importer].add(item.imported)
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        yield f"imports go in a circle: {' -> '.join(reversed(error.args[1]))}"


# -------------------------------------------------------------------------- the tests
def test_the_source_keeps_to_the_layers() -> None:
    found = complaints(SOURCE)
    assert not found, "\n".join(found)


def test_no_two_classes_have_one_name() -> None:
    names = [
        node.name
        for path in SOURCE.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    assert len(names) > 100
    assert sorted(names) == sorted(set(names))


def test_the_library_imports_with_numpy_and_scipy_alone() -> None:
    extras = {name for names, _ in OPTIONAL.values() for name in names}
    script = f"""
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {sorted(extras)}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Refuse())
sys.path.insert(0, {str(SOURCE.parent)!r})
import numpy.linalg, scipy.optimize, scipy.sparse, scipy.spatial, scipy.stats
before = set(sys.modules)  # what the system, NumPy and SciPy load is their affair
import dszog, dszog.cli, dszog.show.progress
ours = {{"dszog", "numpy", "scipy"}} | set(sys.stdlib_module_names)
loaded = {{n for n, m in sys.modules.items() if hasattr(m, "__file__")}} - before
names = {{n.split(".")[0] for n in loaded}}
print(sorted(n for n in names - ours if not n.startswith("_")))
"""
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )

    assert done.stdout.strip() == "[]"


# ----------------------------------------------------------------- does it see things?

CLEAN = {
    "__init__.py": "from dszog.minimize import minimize\n",
    "contract/arrays.py": "import numpy as np\n",
    "errors.py": "class DszogError(Exception): ...\n",
    "contract/query.py": "from dszog.contract.arrays import np\nimport dszog.errors\n",
    "methods/__init__.py": "from dszog.methods.one import One\n",
    "methods/one.py": "from ..contract.query import np\nfrom .base import State\n",
    "methods/base.py": "from __future__ import annotations\nimport math\n",
    "problem/__init__.py": "",
    "problem/constraints/__init__.py": "",
    "problem/constraints/base.py": (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    from dszog.problem.constraints.linear import Linear\n"
        "def linear():\n    from dszog.problem.constraints.linear import Linear\n"
    ),
    "problem/constraints/linear.py": "from . import base\nimport scipy\n",
    "problem/problem.py": "from dszog.problem import constraints\n",
    "run/loop.py": "import time\nfrom dszog.methods import One\n",
    "run/result.py": "def plot():\n    from dszog.show import plot\n",
    "show/progress.py": "def show():\n    import rich\n",
    "minimize.py": "from dszog.run.loop import One\nimport dszog.problem\n",
    "cli/__init__.py": "import cyclopts\nimport dszog\nprint('hello')\n",
}


def _tree(root: Path, **changes: str) -> Path:
    for name, text in (CLEAN | changes).items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_clean_tree_gives_no_complaint(tmp_path: Path) -> None:
    assert complaints(_tree(tmp_path)) == []


VIOLATIONS = [
    ("methods/one.py", "import dszog.problem", "methods must not import problem"),
    ("methods/__init__.py", "from ..run.loop import x", "methods must not import run"),
    (
        "methods/one.py",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import dszog.problem",
        "methods must not import problem",
    ),
    ("methods/one.py", "import dszog", "must not import dszog itself, but from its"),
    ("contract/query.py", "import dszog.methods", "contract must not import methods"),
    ("run/loop.py", "import dszog.save", "run must not import save"),
    ("utils.py", "", "dszog.utils has no place in the layers"),
    ("minimize.py", "import dszog_paper", "only the command line may import"),
    (
        "methods/base.py",
        "from .one import x",
        "dszog.methods.base -> dszog.methods.one",
    ),
    ("contract/query.py", "import pandas", "contract must not need pandas"),
    ("methods/one.py", "def f():\n    import numba", "methods must not need numba"),
    ("run/loop.py", "import pickle", "pickle must not be imported"),
    ("run/loop.py", "import importlib.util", "importlib must not be imported"),
    ("run/loop.py", "eval('1')", "eval() must not be called"),
    ("readers/new.py", "import subprocess", "a reader must not import subprocess"),
    ("readers/new.py", "def f():\n    from zipfile import ZipFile", "import zipfile"),
    ("readers/new.py", "import numpy as np\nnp.load(1)", "must not use np.load"),
    ("readers/new.py", "import os\nos.system('')", "must not use os.system"),
    ("readers/new.py", "getattr(1, 'x')", "a reader must not call getattr()"),
    ("readers/new.py", "open('x')", "a reader must not call open()"),
    ("readers/new.py", "x = ().__class__", "must not use ().__class__"),
    ("run/loop.py", "print(1)", "print() belongs to the command line"),
    ("run/loop.py", "assert True", "a bare assert is no check"),
    ("run/loop.py", "np.load(1, allow_pickle=True)", "allow_pickle must not be used"),
    ("methods/one.py", "np.random.seed(0)", "np.random.seed is not stream"),
    ("run/loop.py", "np.random.default_rng()", "np.random.default_rng is not stream"),
    ("run/loop.py", "from numpy.random import rand", "numpy.random.rand must not be"),
    ("methods/base.py", "import time", "methods must not read a clock (time)"),
]


@pytest.mark.parametrize(("name", "added", "complaint"), VIOLATIONS)
def test_a_violation_is_seen(
    tmp_path: Path, name: str, added: str, complaint: str
) -> None:
    text = f"{CLEAN.get(name, '')}\n{added}\n"
    found = complaints(_tree(tmp_path, **{name: text}))
    assert any(complaint in text for text in found)
    assert all(complaint in text or "in a circle" in text for text in found)


def test_the_package_runs_as_the_command_line() -> None:
    pytest.importorskip("cyclopts")
    done = subprocess.run(
        [sys.executable, "-m", "dszog", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout.strip()) == (0, dszog.__version__)
