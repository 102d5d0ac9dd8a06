"""How the site is built: ``make docs``, off line, with warnings as errors."""

from __future__ import annotations

import logging
import os
import re
import sys
import warnings
from pathlib import Path

from dszog import __version__
from dszog.cli.app import app as command_line

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_extensions"))

# Pages with cells and examples say the same on every machine, whatever it has.
os.environ.setdefault("DSZOG_KERNELS", "numpy")
os.environ.pop("DSZOG_DATA", None)
os.environ.setdefault("DASK_LOGGING__DISTRIBUTED", "warning")
for name in ("traitlets", "dszog"):  # something listens to all, and would print it
    logging.getLogger(name).setLevel(logging.WARNING)

project = "dszog"
author = "the dszog developers"
copyright = author
version = release = __version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_nb",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
    "math_as_mathml",
]
exclude_patterns = ["_build", "_*", "gallery/*.ipynb", "**/README.md"]
templates_path = ["_templates"]
nitpicky = True
nitpick_ignore_regex = [("py:.*", r"(numpy|np|scipy|sklearn|optional|callable).*")]

highlight_language = "none"  # of blocks that do not say

# Markdown. Cells are run when the site is built; other blocks are run by the tests.
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
nb_execution_mode = "auto"
nb_execution_raise_on_error = True
nb_execution_timeout = 120
nb_merge_streams = True

# The reference, from the docstrings.
autodoc_typehints = "none"  # the docstrings say more, and more briefly
autodoc_member_order = "bysource"
autosummary_generate = True
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

# The commands, from the program: what they are called with is set as code.
_told = command_line.generate_docs(output_format="markdown").replace(" -m sphinx", "")
_told = re.sub(r"(?<=\n\n)(dszog [^\n]+)(?=\n\n)", r"`\1`", _told)
_kept = HERE / "api" / "generated" / "commands.txt"
_kept.parent.mkdir(exist_ok=True)
_kept.write_text(_told[_told.index("## dszog ") :], encoding="utf-8")

# Examples are run when the site is built.
sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "download_all_examples": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
    "thumbnail_size": (640, 420),
    "min_reported_time": 0,  # each page says how long it took
    "write_computation_times": False,  # a page that fetches scripts
}
warnings.filterwarnings("ignore", message=".*Agg.*cannot show.*")

html_theme = "furo"
html_title = f"dszog {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sourcelink = False
html_show_search_summary = False  # fetched, which a page from a file may not
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
