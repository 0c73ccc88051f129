"""How sphinx builds these pages: `make docs`. Nothing is downloaded."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

# Set before matplotlib is imported: figures go to files, even if there is a screen.
os.environ.setdefault("MPLBACKEND", "agg")
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

import deferlearn  # noqa: E402

project = "deferlearn"
author = "The deferlearn developers"
copyright = author
version = release = deferlearn.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",  # formulas are shown without a network
]
exclude_patterns = [
    "_build",
    "auto_examples/**/*.ipynb",
    "auto_examples/**/*.py",
    "**/*.zip",
    "api/backreferences",
]
templates_path = ["_templates"]
default_role = "py:obj"
# Docstrings use |V|, the number of samples; sphinx would take the bars for a substitution.
rst_prolog = r"""
.. |V| replace:: \|V\|
"""

# Pages are Markdown, with formulas between dollar signs. Headings get anchors, so pages can link to them.
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections say the types in words
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"plot_",
    "within_subsection_order": "story_order.StoryOrder",
    "doc_module": ("deferlearn",),
    "backreferences_dir": "api/backreferences",
    "abort_on_example_error": True,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 1,
    "download_all_examples": False,
    "matplotlib_animations": False,
}

html_theme = "pydata_sphinx_theme"
html_title = f"deferlearn {version}"
html_static_path = ["_static"]
html_css_files = ["deferlearn.css"]
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "header_links_before_dropdown": 6,
    "logo": {"text": "deferlearn"},
    "secondary_sidebar_items": ["page-toc"],
}
# Pages without subpages have an empty sidebar.
html_sidebars = {
    page: [] for page in ("index", "start", "does_it_help", "method", "engine", "others")
}
html_show_sourcelink = False


def setup(app):
    """Docstrings are written for a terminal, and scikit-learn adds methods that need its own glossary."""

    def quote_attribute(app, what, name, thing, options, lines):
        """Sphinx would take a shape such as (n_iter_,) for a link."""
        lines[:] = [re.sub(r"\((n_\w+_),\)", r"(``\1``,)", line) for line in lines]

    def skip_requests(app, what, name, thing, skip, options):
        """Whether the member is one of set_fit_request, set_predict_request, ..."""
        return True if re.fullmatch(r"set_\w+_request", name) else None

    app.connect("autodoc-process-docstring", quote_attribute, priority=1)  # before numpydoc
    app.connect("autodoc-skip-member", skip_requests)
