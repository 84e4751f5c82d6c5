"""Services: what is under test, behind one way to call it.

    python_function, programs, http_endpoint, openai_chat, agent, replay
                         one service each, with everything that declares it
    model_apis           the APIs that chat models are behind
    service_factors      what is recorded of a service; secrets are named and never shown; what a
                         call can end in

The modules that begin with an underscore hold what several of them use.
"""

from __future__ import annotations

from trialwise.catalogue import SERVICE_EXPORTS
from trialwise.lazy_exports import lazy_names

_MODULES = SERVICE_EXPORTS
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
