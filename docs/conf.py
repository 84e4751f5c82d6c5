"""Sphinx configuration: Markdown pages, and the reference generated from docstrings."""

import re

from sphinx.ext.napoleon import GoogleDocstring

from trialwise import stats
from trialwise.stats import sequential

project = "trialwise"
author = "The trialwise developers"
release = "0.2.0.dev1"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "trialwise"
autodoc_default_options = {"members": True}
autodoc_typehints = "description"
autodoc_member_order = "bysource"
napoleon_google_docstring = True
napoleon_numpy_docstring = True
myst_heading_anchors = 3
# A parameter type such as "sequence of (successes, trials)" is not a link to a field of that name.
suppress_warnings = ["ref.python"]


def _whole(self):
    """No type, and the whole docstring: a colon in a sentence does not end the name of a type."""
    lines = self._dedent(self._consume_to_end())
    return "", self.__class__(lines, self._config).lines()


GoogleDocstring._consume_inline_attribute = _whole


def _skip_shared(_app, what, name, value, skip, _options):
    """Leave out what the modules of `trialwise.stats` share: only exported names are public."""
    home = getattr(value, "__module__", None) or ""
    if what == "module" and home.startswith("trialwise.stats."):
        return skip or not (name in stats.__all__ or name in sequential.__all__)
    return None


def _leave_out_of_index(_app, page, source):
    """The page of all names repeats what the pages after it describe and put into the index."""
    if page == "reference/names":
        source[0] = re.sub(r"(\.\. auto\S+ \S+)", r"\1\n   :no-index:\n", source[0])


def setup(app):
    """Connect the rules above."""
    app.connect("source-read", _leave_out_of_index)
    app.connect("autodoc-skip-member", _skip_shared)
