"""The suite file: found, read with positions, checked as a whole, and made into contracts.

A name loads its module on first use; type checkers read `__init__.pyi`.

    suite_files, yaml_reading, environment    find files, read YAML with places, fill in `${NAME}`
    reading_context, suite_problems           the suite being read, and what is wrong with it
    keys, check_keys, gate_keys, input_keys   the keys of a suite, derived from declarations
    suite_services, suite_judges              keys of services and judges, and how they are built
    file_patterns                             the files that a pattern finds
    *_building, contract_parts                contracts from what was read
    loading, loaded_suite                     the whole suite
    schema_file, reference_page               the JSON Schema and the reference page
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "loading": "load_suite",
    "suite_problems": "Problem SuiteError SuiteNotFound",
    "environment": "Redaction",
    "reference_page": "suite_reference",
    "schema_file": "suite_schema",
    "loaded_suite": "Report Suite SuiteContract",
    "suite_files": "SUITE_NAMES find_suite",
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
