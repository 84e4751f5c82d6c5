"""Sequential designs for a rate: as few trials as two exact errors allow.

`SequentialDesign` is the way in. A name loads its module on first use, so importing this package
imports none of them; type checkers read `__init__.pyi`, and a test holds the two together.
"""

from __future__ import annotations

#: Where each public name lives.
_MODULES = {
    "_claim": "default_alternative",
    "bound": "FixedSize Shortfall expected_trials_bound fixed_size shortfall",
    "catalogue": "DesignCache design_key",
    "characteristic": "OperatingCharacteristic",
    "design": "Decision Method Mix SequentialDesign",
    "inference": "estimate_bias naive_bias naive_interval stopped_estimate stopped_interval",
}
_EXPORTS = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = list(_EXPORTS)


def __getattr__(name: str) -> object:
    if name not in _EXPORTS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_EXPORTS[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
