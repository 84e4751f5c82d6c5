"""Suites of mcptest.

- `mcptest_suite`: the file, its servers and its agents
- `target_matching`: what an agent's session has to hold, checked at a target by a matcher
"""
