"""Everything that an extension of trialwise imports. A name loads its module on first use."""

from __future__ import annotations

from trialwise.lazy_exports import lazy_names

#: Where each public name lives.
_MODULES = {"trialwise.procedures.base": "Procedure"}
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
