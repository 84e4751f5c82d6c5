"""Checks: yes/no questions about one reply, each with an explanation of what it found.

A name loads its module on first use, and a module its libraries on first use of a check: importing
this package imports none of them. Type checkers read `__init__.pyi`.

Modules of checks. The class of a check is its constructor, which users call in lower case:

    texts                        the text of a reply
    whole_reply                  the whole reply, also against `expected` of the input or a schema
    parsable, expressions        the document that it holds
    tools                        the calls of an agent
    resources                    turns, tokens, money, time and the end of a command
    combine, predicates          checks made of others or from what suite files spell, and
                                 functions as checks

What they are made with:

    check_base           `Check`: never raises on a reply; names and arguments of checks; pieces
                         of a reply in explanations
    criterion_scopes     what makes a criterion the same criterion; the source of its functions
    reply_reading        how replies and their traces are read
    time_limits          how long a pattern may take on one reply
"""

from __future__ import annotations

from trialwise.catalogue import CHECK_EXPORTS
from trialwise.lazy_exports import lazy_names

_MODULES = CHECK_EXPORTS
_EXPORTS, __getattr__, __dir__ = lazy_names(__name__, _MODULES)

__all__ = list(_EXPORTS)
