"""Bridges to other tools: suites they wrote, and the reference cases that several tools share.

Nothing in the rest of the package imports this. Each part is found through an entry point:

    importers    suite files of cerberus and mavai, converted to suite files of trialwise
    conformance  published reference cases, recomputed through the path that decides verdicts
"""
