"""Proof: reference cases published by others, and error rates computed rather than claimed."""
