"""Executors on the workers of other frameworks: a Dask cluster, or a Ray cluster.

Each module has a function `open_pool`, as `trialwise.executors.pool_driver` describes it, and
imports its framework. The core names the modules in a table and imports one when a run asks for it.
"""
