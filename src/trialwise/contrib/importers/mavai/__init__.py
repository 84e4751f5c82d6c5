"""Suites of the mavai family, `mavai-contract/1` and `mavai-services/1`, as baseltest has them."""
