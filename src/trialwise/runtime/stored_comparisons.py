"""Comparisons that are kept: loaded, and verified as a stranger would."""

from __future__ import annotations

from pathlib import Path

from trialwise import __version__
from trialwise.errors import RunNotFound
from trialwise.model.codec import from_plain, to_plain
from trialwise.procedures.comparing.comparison_findings import ArmRun, ComparisonQuestion
from trialwise.procedures.comparing.run_comparison import compare_records
from trialwise.runtime.comparison_result import Comparison
from trialwise.runtime.open_comparison import read_rules, read_votes
from trialwise.runtime.verifying import WORDING, Difference, Verification, list_differences
from trialwise.stores.comparisons import ComparisonStore
from trialwise.stores.runs import RunStore


def load_comparison(name: str | Path, *, store: str | Path = ".trialwise") -> Comparison:
    """Load a comparison that is kept, and compare its runs again by its own rules.

    Args:
        name: Its name or its folder.
        store: The folder runs are kept in.

    Raises:
        RunNotFound: There is no such comparison, or one of its runs has no verdict.

    >>> import tempfile
    >>> import trialwise as tw
    >>> criterion = tw.Criterion("answers", tw.contains("555"), at_least=0.9)
    >>> old = tw.Contract("sums", lambda question: "554", [criterion], sampling=["15 * 37?"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = tw.compare(old, old.with_service(lambda question: "555"), store=folder)
    ...     tw.load_comparison(made.path.name, store=folder).verdict == made.verdict
    True
    """
    stored = ComparisonStore(Path(store)).open(name)
    head, runs = stored.head, RunStore(Path(store))
    kept = [runs.open(one) for one in head.runs]
    arms = tuple(
        ArmRun(label, one.record(), one.path) for label, one in zip(head.labels, kept, strict=True)
    )
    asked = from_plain(ComparisonQuestion, dict(head.question))
    verdict = compare_records(arms, asked, read_rules(head.rules), read_votes(stored))
    return Comparison(verdict, arms, stored.path)


def verify_stored_comparison(name: str | Path, *, store: str | Path = ".trialwise") -> Verification:
    """Compare the runs of a comparison again, and its verdict with the one that is kept.

    The runs are verified by themselves. The wording of another version is not compared.

    Args:
        name: Its name or its folder.
        store: The folder runs are kept in.

    Raises:
        RunNotFound: There is no such comparison, or it has no verdict.
    """
    stored = ComparisonStore(Path(store)).open(name)
    verdict = stored.verdict()
    if verdict is None:
        raise RunNotFound(f"{stored.path}: the comparison has no verdict: `resume` continues it")
    found = load_comparison(name, store=store)
    skipped = frozenset() if stored.tool_version == __version__ else WORDING
    differences = [*list_differences("verdict", verdict, to_plain(found.verdict), skipped)]
    differences += [
        Difference(f"{file}: checksum", "another", "that of its content")
        for file, holds in stored.compare_checksums().items()
        if not holds
    ]
    return Verification(
        run_id=stored.comparison_id,
        contract=" / ".join(stored.head.labels),
        trials=sum(len(one.record.trials) for one in found.arms),
        tool_version=stored.tool_version,
        differences=tuple(differences),
    )
