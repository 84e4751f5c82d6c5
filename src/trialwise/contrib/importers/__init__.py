"""Suites of neighbours, turned into suites of ours that decide the same way.

What cannot be carried over is refused by name and place, all of it at once; nothing of what is read
is ever executed. A name loads its module on first use; type checkers read `__init__.pyi`.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "cerberus.suite": "import_cerberus",
    "imported": "Imported",
    "mavai.suite": "import_mavai",
    "problems": "ImportRefused",
    "recognising": "import_suite",
    "rendering": "render_yaml",
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
