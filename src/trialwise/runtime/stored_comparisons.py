"""Comparisons that are kept: loaded, and verified as a stranger would."""

from __future__ import annotations

from pathlib import Path

from trialwise import __version__
from trialwise.errors import RunNotFound
from trialwise.model.codec import from_plain, to_plain
from trialwise.procedures.comparing.findings import ArmRun, ComparisonQuestion
from trialwise.procedures.comparison import COMPARISON
from trialwise.runtime.choice_result import Choice, ExploredArms
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
    found = load_answer(name, store=store)
    if not isinstance(found, Comparison):
        raise RunNotFound(f"{name} is no comparison: `trialwise show` shows it")
    return found


def load_answer(
    name: str | Path, *, store: str | Path = ".trialwise"
) -> Comparison | Choice | ExploredArms:
    """Load what several arms came to, a comparison, a choice or a description, from their runs.

    Args:
        name: Its name or its folder.
        store: The folder runs are kept in.

    Raises:
        RunNotFound: There is nothing of this name, or one of its runs has no verdict.
    """
    stored = ComparisonStore(Path(store)).open(name)
    head, runs = stored.head, RunStore(Path(store))
    kept = [runs.open(one) for one in head.runs]
    arms = tuple(
        ArmRun(label, one.record(), one.path) for label, one in zip(head.labels, kept, strict=True)
    )
    question = dict(head.question)
    if head.kind != "exploration":
        question.setdefault("edition", 1)
    if head.kind == "comparison":
        asked = from_plain(ComparisonQuestion, question)
        verdict = COMPARISON.decide(arms, asked, read_rules(head.rules), read_votes(stored))
        return Comparison(verdict, arms, stored.path)
    # The other two are rare, and loaded only where one is meant.
    from trialwise.procedures.choice import (
        CHOICE,
        ChoiceQuestion,
        ExplorationQuestion,
        describe_arms,
    )

    if head.kind == "choice":
        chosen = CHOICE.decide(arms, from_plain(ChoiceQuestion, question))
        return Choice(chosen, arms, stored.path)
    described = from_plain(ExplorationQuestion, question)
    found = describe_arms(arms, criterion=described.criterion, confidence=described.confidence)
    return ExploredArms(found, arms)


def list_runs(found: Comparison | Choice | ExploredArms) -> tuple[ArmRun, ...]:
    """List the runs of the arms, in their order."""
    return found.arms if isinstance(found, Comparison) else found.runs


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
    found = load_answer(name, store=store)
    again = to_plain(found.found if isinstance(found, ExploredArms) else found.verdict)
    if not isinstance(found, Comparison):
        again["decision"] = verdict.get("decision")  # it follows from the outcome
    is_old = "edition" not in stored.head.question and stored.head.kind != "exploration"
    skipped = WORDING | {"guarantee", "edition", "obstacle"} if is_old else frozenset[str]()
    skipped |= frozenset() if stored.tool_version == __version__ else WORDING
    differences = [*list_differences("verdict", verdict, again, skipped)]
    differences += [
        Difference(f"{file}: checksum", "another", "that of its content")
        for file, holds in stored.compare_checksums().items()
        if not holds
    ]
    return Verification(
        run_id=stored.comparison_id,
        contract=" / ".join(stored.head.labels),
        trials=sum(len(one.record.trials) for one in list_runs(found)),
        tool_version=stored.tool_version,
        differences=tuple(differences),
    )
