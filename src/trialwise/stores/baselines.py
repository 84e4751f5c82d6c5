"""Baselines on disk, one JSON file each, made to be read in a review; and the cache of designs.

A baseline decides later verdicts, so a file that is not as it was written is an error and never
passed over: to find no baseline where there is a damaged one would be a quiet lie.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from trialwise import model
from trialwise.errors import BaselineError
from trialwise.model.codec import from_plain, to_plain
from trialwise.model.plain_json import make_encoder
from trialwise.regular_files import read_regular
from trialwise.stores._files import checksum_of, replace_file, safe_name
from trialwise.validation import require_count

_FORMAT = "trialwise.baseline/1"
_ENCODE = make_encoder(ensure_ascii=False, separators=(", ", ": "))
_PER_LINE = 10
_RESTORE = "Restore it from version control, or delete it and measure a new one"
_COUNTED_LATER = ("inputs", "repetitions", "analysis", "excused")
#: The fields of a baseline in the order in which a reader wants them, and what is derived.
_LAYOUT = (
    *("contract", "identifier", "created_at", "epoch", "valid_days", "grace_days", "expires_at"),
    *("covariates", "factors", "claim", "criteria", "run_trials", "latencies_s", "run_id"),
    "tool_version",
)


class BaselineStore:
    """A folder with a folder for each contract.

    A file is written beside its place and moved there: a reader never sees half of one. What is
    saved is never overwritten, since a verdict may have been decided against it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path_of(self, baseline: model.Baseline) -> Path:
        """Return where a baseline is kept, or would be."""
        return self._contract(baseline.contract) / f"{safe_name(baseline.identifier)}.json"

    def save(self, baseline: model.Baseline) -> Path:
        """Keep a baseline; saving the same one twice changes nothing.

        Raises:
            BaselineError: Another one of that identifier is there, or the folder cannot be
                written to.
        """
        path = self.path_of(baseline)
        known = self._find_known(path)
        if known is None:
            with _accessing(path, "the baseline cannot be written"):
                path.parent.mkdir(parents=True, exist_ok=True)
                # Half a surrogate pair, as from an environment variable that is no UTF-8, is
                # escaped; Python writes such an escape as JSON does.
                text = f"{_pretty(_document(baseline))}\n"
                replace_file(path, text.encode("utf-8", "backslashreplace"))
        elif known != baseline:
            raise BaselineError(
                f"{path}: there is another baseline of this identifier, and a baseline is never "
                "overwritten. Delete the file, or give the new one another identifier."
            )
        return path

    def check_writable(self, contract: str) -> None:
        """Find out before the trials are paid for whether a baseline could be kept.

        Raises:
            BaselineError: It could not.
        """
        folder = self._contract(contract)
        with _accessing(folder, "no baseline could be written"):
            folder.mkdir(parents=True, exist_ok=True)
            probe = folder / ".writable"
            probe.touch()
            probe.unlink()

    def load(self, path: Path) -> model.Baseline:
        """Read a file.

        Raises:
            BaselineError: It is not there, not as it was written, or of another format.
        """
        with _accessing(path, "the baseline cannot be read"):
            data = read_regular(path)
        return _read(path, data)

    def all(self, contract: str | None = None) -> list[tuple[Path, model.Baseline]]:
        """Return every baseline, or every one of a contract, the oldest first.

        Raises:
            BaselineError: A file is not as it was written, or lies in the wrong folder.
        """
        if contract is None:
            folders = [path for path in _entries(self.folder) if path.is_dir()]
        else:
            folders = [self._contract(contract)]
        found: list[tuple[Path, model.Baseline]] = []
        for path in [path for folder in folders for path in _entries(folder)]:
            if path.suffix == ".json":
                baseline = self.load(path)
                self._check_place(path, baseline)
                found.append((path, baseline))
        return sorted(found, key=lambda one: (one[1].created_at, one[1].epoch, one[1].identifier))

    def next_epoch(self, contract: str, profile: Mapping[str, str]) -> int:
        """Return the epoch that a new measurement under this index begins, from 1."""
        index = dict(profile)
        known = [one.epoch for _, one in self.all(contract) if dict(one.covariates) == index]
        return max(known, default=0) + 1

    def promote(self, path: Path) -> Path:
        """Take a baseline from elsewhere, such as a build's artefact, as the newest of its index.

        Promoting one that is there already changes nothing.
        """
        baseline = self.load(path)
        known = self._find_known(self.path_of(baseline))
        next_epoch = self.next_epoch(baseline.contract, baseline.covariates)
        return self.save(replace(baseline, epoch=next_epoch if known is None else known.epoch))

    def list_old(self, keep: int, *, contract: str | None = None) -> list[Path]:
        """List all but the newest few of each index.

        Args:
            keep: How many to keep of each index, at least 1.
            contract: Only this one's.
        """
        require_count("keep", keep, minimum=1)
        indexes: dict[object, list[Path]] = {}
        for path, baseline in self.all(contract):
            index = (baseline.contract, frozenset(baseline.covariates.items()))
            indexes.setdefault(index, []).append(path)
        return [path for paths in indexes.values() for path in paths[:-keep]]

    def prune(self, keep: int, *, contract: str | None = None) -> list[Path]:
        """Delete what `list_old` lists; the deleted files."""
        old = self.list_old(keep, contract=contract)
        for path in old:
            with _accessing(path, "the baseline cannot be deleted"):
                path.unlink(missing_ok=True)
        return old

    def _contract(self, contract: str) -> Path:
        return self.folder / safe_name(contract)

    def _find_known(self, path: Path) -> model.Baseline | None:
        with _accessing(path, "the baseline cannot be looked up"):
            return self.load(path) if path.exists() else None

    def _check_place(self, path: Path, baseline: model.Baseline) -> None:
        """A copy under another name would be counted twice, or for another contract."""
        # A contract that was renamed may be another one, so that its baselines are not taken over.
        if path != self.path_of(baseline):
            raise BaselineError(
                f"{path}: this is the baseline {baseline.identifier!r} of the contract "
                f"{baseline.contract!r}. Move it to {self.path_of(baseline)}, or delete it; a "
                "renamed contract is measured anew."
            )


def _entries(folder: Path) -> list[Path]:
    """Return what lies in a folder without hidden files; nothing if there is no folder."""
    with _accessing(folder, "the baselines cannot be listed"):
        try:
            # Hidden files are parts that a killed process has left.
            return sorted(path for path in folder.iterdir() if not path.name.startswith("."))
        except FileNotFoundError:
            return []


# To a document --------------------------------------------------------------------------------


def _document(baseline: model.Baseline) -> dict[str, Any]:
    plain, expires = to_plain(baseline), baseline.expires_at
    plain["expires_at"] = None if expires is None else expires.isoformat()
    for part in (plain, *plain["gates"].values()):
        for name in ("covariates", "factors", "gates", "numbers"):
            if name in part:  # sorted, so that two files are compared line by line
                part[name] = dict(sorted(part[name].items()))
    for name, one in plain["criteria"].items():
        counts = {key: one.pop(key) for key in ("trials", "passed")}
        counts["rate"] = round(baseline.criteria[name].rate, 6)
        # As the versions wrote it that did not count some of them.
        absent = {key for key in _COUNTED_LATER if one[key] is None}
        rest = {key: value for key, value in one.items() if key not in absent}
        plain["criteria"][name] = counts | rest
    document = {"format": _FORMAT, **{name: plain[name] for name in _LAYOUT}}
    if plain["gates"]:
        document["gates"] = plain["gates"]
    return {**document, "checksum": checksum_of(document)}


def _pretty(value: Any, indent: str = "") -> str:
    """JSON with two spaces a level, and numbers in lines of ten: a latency a line is unreadable."""
    deeper = indent + "  "
    if not value or not isinstance(value, dict | list):
        return _ENCODE(value)
    if isinstance(value, dict):
        parts = [f"{_ENCODE(key)}: {_pretty(part, deeper)}" for key, part in value.items()]
    else:
        parts = [_pretty(part, deeper) for part in value]
        if isinstance(value[0], float):
            starts = range(0, len(parts), _PER_LINE)
            parts = [", ".join(parts[start : start + _PER_LINE]) for start in starts]
    first, last = "{}" if isinstance(value, dict) else "[]"
    return f"{first}\n{deeper}" + f",\n{deeper}".join(parts) + f"\n{indent}{last}"


# From a document ------------------------------------------------------------------------------


def _read(path: Path, data: bytes) -> model.Baseline:
    with _refusing(path, "it is not a whole JSON document"):
        document = json.loads(data.decode("utf-8"), object_pairs_hook=_unique)
    if not isinstance(document, dict) or "format" not in document:
        raise BaselineError(f"{path}: this is not a baseline. {_RESTORE}.")
    if document["format"] != _FORMAT:
        raise BaselineError(
            f"{path}: its format is {document['format']!r}, and this version of trialwise reads "
            f"{_FORMAT!r}. Use the version that wrote it, or measure a new baseline."
        )
    with _refusing(path, "it is not as it was written"):
        if document.get("checksum") != checksum_of(document):
            raise ValueError("the checksum does not fit the contents")
        baseline = _baseline(document)
        # Whatever was derived is derived again, and keys that are not known are found.
        _check_same(_document(baseline), document)
    return baseline


def _baseline(document: Mapping[str, Any]) -> model.Baseline:
    derived = {"format", "checksum", "expires_at"}
    plain = {name: value for name, value in document.items() if name not in derived}
    plain["criteria"] = {
        name: {key: value for key, value in one.items() if key != "rate"}
        for name, one in document["criteria"].items()
    }
    return from_plain(model.Baseline, plain)


def _check_same(written: Mapping[str, Any], read: Mapping[str, Any], where: str = "") -> None:
    for key in sorted({*written, *read} - {"checksum"}):
        name = f"{where}{key!r}"
        if key not in read:
            raise ValueError(f"{name} is missing")
        if key not in written:
            raise ValueError(f"{name} is not known")
        if isinstance(written[key], dict):
            _check_same(written[key], read[key], f"{name} → ")
        elif written[key] != read[key]:
            raise ValueError(f"{name} is {read[key]!r}, which does not fit the rest")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is repeated")
    return found


@contextmanager
def _refusing(path: Path, problem: str) -> Iterator[None]:
    """Whatever is wrong with a file, in words that say which file and what to do."""
    try:
        yield
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        detail = f"{error} is missing" if isinstance(error, KeyError) else str(error)
        raise BaselineError(f"{path}: {problem} ({detail}). {_RESTORE}.") from None


@contextmanager
def _accessing(path: Path, problem: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise BaselineError(
            f"{path}: {problem}: {reason}. Check the path and its permissions."
        ) from None


# --- Sequential designs on disk: found once, never searched for again -----------------------------


class FileDesignCache:
    """A folder with one small JSON file per design.

    A file is written beside its place and moved there, so that a reader never sees half of one
    and two runs that find the same design do not disturb each other. What cannot be read counts
    as absent, and a folder that cannot be written to only means searching again.

    >>> import tempfile
    >>> cache = FileDesignCache(Path(tempfile.mkdtemp()))
    >>> cache.save("key", {"cap": 50})
    >>> cache.load("key")
    {'cap': 50}

    Args:
        folder: Made with the first design; None for the user's own.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._given = folder

    @property
    def _folder(self) -> Path:
        """The folder; the user's own is looked for when a design is, since few runs search."""
        return find_design_folder(os.environ) if self._given is None else self._given

    def load(self, key: str) -> Mapping[str, Any] | None:
        """Load the values saved under a key, or None."""
        try:
            values = json.loads(read_regular(self._file(key)))
        except (OSError, ValueError, RecursionError):
            return None
        return values if isinstance(values, dict) else None

    def save(self, key: str, values: Mapping[str, Any]) -> None:
        """Keep plain values under a key; saving the same key twice is harmless."""
        with suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            replace_file(self._file(key), json.dumps(values).encode())

    def _file(self, key: str) -> Path:
        """A key names a file in the folder and nothing outside it."""
        safe = "".join(c if c.isalnum() or c in "-._" else "_" for c in key).lstrip(".")
        return self._folder / f"{safe or '_'}.json"


def find_design_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's cache folder: `$TRIALWISE_CACHE`, else `$XDG_CACHE_HOME/trialwise`.

    Args:
        environment: The variables of the process.
    """
    if environment.get("TRIALWISE_CACHE"):
        return Path(environment["TRIALWISE_CACHE"], "designs")
    root = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root, "trialwise", "designs")
