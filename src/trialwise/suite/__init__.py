"""The suite file: found, read with positions, checked as a whole, and made into contracts.

A name loads its module on first use; type checkers read `__init__.pyi`.

    yaml_reading, suite_problems      YAML with places, and what is wrong at a place
    reading_context                   the suite being read, with its includes and `${NAME}`
    keys                              the keys of a suite, derived from declarations, and its JSON
                                      Schema; those of
    check_keys, suite_services        checks; services and judges: with how they are built
    inputs, gates                     inputs; gates: likewise
    contract_building, contract_parts contracts from what was read
    loading, loaded_suite             the whole suite: how it is found and read, and what it says
"""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {
    "loading": "load_suite",
    "suite_problems": "Problem SuiteError SuiteNotFound",
    "keys": "suite_schema",
    "loaded_suite": "SUITE_NAMES Redaction Report Suite SuiteContract find_suite",
}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
