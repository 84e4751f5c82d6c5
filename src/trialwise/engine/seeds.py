"""Seeds by what they belong to, never by when they were drawn.

Neither the number of workers nor a restart in between may change what a trial is given.
"""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

__all__ = ["derive_seed", "trial_seeds"]


def derive_seed(purpose: str, run_seed: int, name: str) -> int:
    """A 63-bit seed for one purpose, the same on every machine.

    >>> derive_seed("order", 7, "inputs") == derive_seed("order", 7, "inputs")
    True
    """
    return _number(_digest(f"{purpose}/{run_seed}/{name}"))


def trial_seeds(run_seed: int, experiment: str) -> Callable[[int], int]:
    """The seed of every trial of an experiment, by its index.

    >>> seed_of = trial_seeds(7, "inputs")
    >>> seed_of(0) != seed_of(1), seed_of(0) < 2**63
    (True, True)
    """
    beginning = _digest(f"trial/{run_seed}/{experiment}/")

    def seed_of(index: int) -> int:
        digest = beginning.copy()
        digest.update(b"%d" % index)
        return _number(digest)

    return seed_of


def _digest(text: str) -> blake2b:
    # Python's own hash differs from process to process.
    return blake2b(text.encode(errors="surrogatepass"), digest_size=8)


def _number(digest: blake2b) -> int:
    return int.from_bytes(digest.digest(), "big") >> 1
