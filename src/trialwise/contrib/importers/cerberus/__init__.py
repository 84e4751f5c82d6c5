"""Suites of cerberus: a command, scenarios, and assertions in JavaScript decided by Wald's test."""
