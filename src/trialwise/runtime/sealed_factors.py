"""The factors of a run: what its contract and its service say of themselves, without secrets.

A value of the environment is shown as `${NAME}`, as in a reply. So that a change of it is noticed
all the same, a factor that held one ends with a seal: a hash of the whole factor under a key. The
key is in no file of a run. It is `$TRIALWISE_KEY`, or else 32 random bytes in the folder of the
user's settings. Without the key nobody can find the value by trying values out.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from trialwise.model.contract import Contract
from trialwise.redaction import format_seal, redact_text, redact_with

if TYPE_CHECKING:
    from trialwise.model.baseline import Baseline


def with_service_factors(contract: Contract) -> Contract:
    """Return the contract with what its service says of itself; what the contract declares wins.

    A service may have a property `factors`, a mapping of text to text. Secrets are taken out by the
    redaction that is in force.
    """
    shown = _read_factors(contract)
    with redact_with(None):
        whole = _read_factors(contract)
    return replace(contract, factors={name: _seal(shown[name], whole[name]) for name in whole})


def seal_stored(baseline: Baseline) -> Baseline:
    """Return a baseline with its factors as they are sealed now.

    Versions before 0.2 kept values of the environment in clear.
    """
    factors = {name: _seal(redact_text(one), one) for name, one in baseline.factors.items()}
    return replace(baseline, factors=factors)


def _read_factors(contract: Contract) -> dict[str, str]:
    told = getattr(contract.service, "factors", None)
    known = {**(told if isinstance(told, Mapping) else {}), **contract.factors}
    return {str(name): redact_text(str(value)) for name, value in known.items()}


def _seal(shown: str, whole: str) -> str:
    if shown == whole:
        return shown
    key = _find_key(os.environ.get("TRIALWISE_KEY"), os.environ.get("XDG_CONFIG_HOME"))
    return format_seal(shown, _hash(key, "key")[:8], _hash(key, f"factor {whole}")[:16])


def _hash(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode("utf-8", "surrogatepass"), "sha256").hexdigest()


@cache
def _find_key(given: str | None, settings: str | None) -> bytes:
    """Return the key of this user, which is made when it is first needed.

    Args:
        given: The text to make it from, if there is one.
        settings: The folder of the user's settings, where it is not the usual one.
    """
    if given:
        # Slow on purpose: a text that somebody chose can be guessed.
        return hashlib.scrypt(given.encode(), salt=b"trialwise seal", n=2**14, r=8, p=1, dklen=32)
    fresh = secrets.token_bytes(32)
    try:
        folder = Path(settings or Path.home() / ".config", "trialwise")
        folder.mkdir(parents=True, exist_ok=True)
        part = folder / f"key.{secrets.token_hex(8)}"
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(fresh)
        try:
            # Of several processes that start at once one makes the key, and all use that.
            with suppress(FileExistsError):
                os.link(part, folder / "key")
        finally:
            part.unlink()
        return (folder / "key").read_bytes()
    except (OSError, RuntimeError):
        # No home to keep it in: what is sealed with it can be compared within this process only.
        return fresh
