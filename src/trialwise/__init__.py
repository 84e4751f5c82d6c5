"""Test systems that do not behave the same way twice.

`trialwise.stats` holds the statistics, `trialwise.procedures` the decisions on counts. Nothing is
imported until it is used.
"""

__version__ = "0.1.0"

__all__ = ["__version__"]
