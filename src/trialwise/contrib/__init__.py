"""Bridges to other tools. The rest of the package works without them and does not import them.

- `importers`: suite files of cerberus and mavai, converted to suite files of trialwise
- `results`: readers of result files that other tools write, for `trialwise score`
- `traces`: readers of sessions as other tools and frameworks keep them
- `executors`: trials on the workers of Dask and Ray clusters
- `conformance`: published reference cases, recomputed through the path that decides verdicts
- `commands`: `trialwise import` and `trialwise conformance`

The core names these parts in a table and imports one when a user asks for it. Other distributions
add theirs through entry points, see `trialwise.extensions`.
"""
