"""Convert suite files of other tools into suite files of trialwise that decide the same way.

What cannot be converted is refused with its place, everything at once. Nothing that is read is
ever executed.

- `suite_importer`: how an importer is declared and found
- `suite_recognition`: finds the importer of a file by its contents
- `suite_converter`: what every conversion of a YAML file collects
- `imported_suite`: the result of an import
- `suite_rendering`: the result as YAML, with notes and comments
- `import_refusal`: the error that lists what cannot be converted
- `named_files`: which files a suite may name
- `yaml_mappings`: the YAML of other tools, read key by key
- `import_notes`: what is left out or different, with its places
- `passing_sets`: weights and thresholds of several checks as one check
- `unwritten_functions`: functions that an import leaves to its user
- `model_endpoints`: where the models of a vendor are called
- `cerberus`, `mavai`, `mcptest`, `promptfoo`, `vally`: the importers

A name loads its module on first use; type checkers read `__init__.pyi`.
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "cerberus.cerberus_suite": "import_cerberus",
    "import_refusal": "ImportRefused",
    "imported_suite": "Imported",
    "mavai.mavai_suite": "import_mavai",
    "mcptest.mcptest_suite": "import_mcptest",
    "promptfoo.promptfoo_suite": "import_promptfoo",
    "vally.vally_suite": "import_vally",
    "suite_importer": "ImportRequest SuiteImporter",
    "suite_recognition": "import_suite",
    "suite_rendering": "render_yaml",
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
