"""Checks: yes/no questions about one reply, each with an explanation of what it found.

A name loads its module on first use, and a module its libraries on first use of a check: importing
this package imports none of them. Type checkers read `__init__.pyi`.

Modules of checks, each with the class, the constructor and what declares both:

    texts, equality, patterns    the text of a reply
    parsable, json_schemas, json_paths, expressions    the document that it holds
    expected_answers             what the input says under `expected`
    tools, agents                the trace of an agent
    resources, exit_codes        tokens, money, time and the end of a command
    combine, predicates          checks made of others, and functions as checks

What they are made with:

    check_base           `Check`: never raises on a reply, can be written down
    check_declarations   names, arguments and where each check lives; those of other distributions
    check_registry       checks from what suite files spell, and back
    criterion_scopes     what makes a criterion the same criterion
    function_source      the source of a function, for its fingerprint
    quoting              pieces of a reply in explanations
    reply_reading, strict_parsing, tool_traces, value_limits    how replies are read
"""

from __future__ import annotations

from trialwise.catalogue import CHECK_EXPORTS
from trialwise.lazy_exports import lazy_names

_MODULES = CHECK_EXPORTS
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
