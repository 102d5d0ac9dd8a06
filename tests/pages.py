"""The pages of the documentation, cut into what can be run and what can be typed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"  # has tests of its own: what it claims is more
OTHERS = [ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"]
PAGES = [*sorted((ROOT / "docs").glob("[!_]*.md")), *OTHERS]
PAGES += sorted((ROOT / "docs").glob("[!_]*/**/*.md"))

_PYTHON = re.compile(
    r"^```(?:\{code-cell\} )?i?python\n(.*?)^```\n(?:\n```text\n(.*?)^```)?",
    re.M | re.S,
)
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
_INDENTED = re.compile(r"(?:^ {4}\S.*\n)+", re.M)
_INLINE = re.compile(r"`(dszog [^`]+)`")
_NOT_RUN = re.compile(r"# Not run here: (.+)")


def name_of(page: Path) -> str:
    """Return the name of a page within the repository."""
    return page.relative_to(ROOT).as_posix()


@dataclass(frozen=True)
class Block:
    """A block of Python on a page."""

    page: Path
    text: str
    first_line: int
    shown_output: str | None  # in a block of text right behind it

    @property
    def reason_not_to_run(self) -> str | None:
        """Why a reader is told that it is not run, or None."""
        found = _NOT_RUN.match(self.text)
        return found[1] if found else None

    def compiled(self) -> CodeType:
        """Return the code, with the line numbers of the page."""
        text = "\n" * (self.first_line - 1) + self.text
        return compile(text, name_of(self.page), "exec", dont_inherit=True)

    def promised_output(self) -> dict[int, str]:
        """Return what comments behind calls of `print` say, by the line of the call."""
        lines = self.text.splitlines()
        promised = {}
        for node in ast.walk(ast.parse(self.text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "print":
                rest = lines[(node.end_lineno or 0) - 1][node.end_col_offset or 0 :]
                if rest.startswith("  # "):
                    promised[self.first_line - 1 + node.lineno] = rest[4:]
        return promised


def python_blocks(page: Path) -> list[Block]:
    """Return the blocks of Python on a page, in their order."""
    text = page.read_text("utf-8")
    return [
        Block(page, found[1], 1 + text.count("\n", 0, found.start(1)), found[2])
        for found in _PYTHON.finditer(text)
    ]


def typed_lines(page: Path) -> Iterator[str]:
    """Yield what a reader may type into a shell: lines of blocks that are no Python."""
    text = page.read_text("utf-8")
    for found in _FENCED.finditer(text):
        if found[1] in ("", "console", "bash", "sh"):
            yield from _shell_lines(found[2])
    for found in _INDENTED.finditer(_FENCED.sub("", text)):
        yield from _shell_lines(found[0])


def _shell_lines(block: str) -> Iterator[str]:
    for line in block.replace("\\\n", " ").splitlines():
        yield line.strip().removeprefix("$ ")


def named_commands(page: Path) -> Iterator[str]:
    """Yield the commands of dszog that the text of a page names."""
    text = _FENCED.sub("", page.read_text("utf-8"))
    for found in _INLINE.finditer(text):
        yield " ".join(found[1].split())
