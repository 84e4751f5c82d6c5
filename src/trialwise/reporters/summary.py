"""What a run concluded, for a terminal or a log: a line a criterion, the suite, what needs a look.

Words carry every meaning; colour only repeats it. At 80 columns a criterion keeps its line; on a
narrower terminal the line loses its last columns, never its verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from trialwise.documents.numbers import (
    as_count,
    as_duration,
    as_ends,
    as_money,
    as_observed,
    as_seconds,
)
from trialwise.documents.phrases import REFUSED, STOPS
from trialwise.documents.printable import count_cells, pad, wrap_text
from trialwise.errors import InvalidArgument
from trialwise.model.verdict import (
    Decision,
    Dimension,
    Finding,
    Intent,
    LatencyFinding,
    Procedure,
    Verdict,
)
from trialwise.pages.finding_facts import (
    list_latency_marks,
    pick_badge,
    pick_interval,
    pick_rate,
    pick_style,
)
from trialwise.procedures.composite import combine
from trialwise.renderers.capabilities import Capabilities, Style
from trialwise.reporters.attention import attention
from trialwise.reporters.gates import reported, runs_of

if TYPE_CHECKING:
    from trialwise.model.metrics import GateFinding

__all__ = ["render_summary"]

_INDENT, _GAP = "  ", "  "
#: A terminal narrower than this wraps by itself.
_NARROWEST = 40
#: A name is not shortened below this.
_NAME = 10
#: A name longer than this makes room for the numbers.
_LONGEST_NAME = 28
#: Inputs named on a line; the others are counted.
_NAMED_INPUTS = 3
#: What needs attention beyond this many lines is read in the report.
_MOST_NOTES = 15


class _Line(NamedTuple):
    """One criterion or latency constraint: its verdict, and its figures or a sentence."""

    name: str
    badge: str
    style: Style
    figures: tuple[str, ...] = ()
    """Rate, interval, trials, stop and cost, empty where there is none."""
    text: str = ""


def render_summary(
    verdicts: Sequence[Verdict],
    *,
    capabilities: Capabilities | None = None,
    reports: Sequence[str] = (),
) -> str:
    """A suite's outcome as text.

    Args:
        verdicts: One per contract, in the suite's order.
        capabilities: What the stream can do; plain ASCII of 80 columns where not given.
        reports: Where the reports are; a path is never shortened.
    """
    if not verdicts:
        raise InvalidArgument("verdicts", [], "hold a run: what was not run is never PASS")
    able = capabilities or Capabilities()
    page = _Page(able, max(_NARROWEST, able.width))
    lines = page.criteria(verdicts)
    lines += page.suite(verdicts, reports)
    lines += page.notes(verdicts)
    return "\n".join(lines) + "\n"


class _Page:
    """The lines of a summary, measured and painted for one stream."""

    def __init__(self, able: Capabilities, width: int) -> None:
        self.able = able
        self.width = width

    # --- Criteria -----------------------------------------------------------------------------

    def criteria(self, verdicts: Sequence[Verdict]) -> list[str]:
        """Every contract's heading and lines, in one alignment."""
        blocks = [(self._heading(one), [*_lines(one)]) for one in verdicts]
        every = [self._shown(line) for _, lines in blocks for line in lines]
        table = [line for line in every if line.figures]
        marks = max((count_cells(line.badge) for line in table), default=4)
        widths = [
            max(map(count_cells, column))
            for column in zip(*(x.figures for x in table), strict=True)
        ]
        # A label may be longer than the verdicts of the table, but has to fit beside a name too.
        longest = max((count_cells(line.badge) for line in every), default=0)
        room = self.width - len(_INDENT) - len(_GAP) - longest
        name = min(max((count_cells(line.name) for line in every), default=0), _LONGEST_NAME, room)
        name, widths = self._fitted(name, marks, widths)
        drawn = iter([self._drawn(line, name, marks, widths) for line in every])
        return [
            text
            for heading, lines in blocks
            for part in (heading, *(next(drawn) for _ in lines))
            for text in part
        ]

    def _heading(self, verdict: Verdict) -> list[str]:
        name = self.able.shown(verdict.contract or "contract", self.width)
        facts = ["smoke: a sentinel, not evidence"] if verdict.intent is Intent.SMOKE else []
        if len(verdict.experiments) == 1:
            facts.append(verdict.claim.about(verdict.experiments[0].inputs))
        if verdict.analysis != "intent-to-treat":
            facts.append(f"decided {verdict.analysis}")
        rest = self.able.shown(self.able.dot.join(["", *facts]))
        if count_cells(name) + count_cells(rest) <= self.width:
            faint = self.able.painted(rest, Style.FAINT)
            return [f"{self.able.painted(name, Style.STRONG)}{faint}"]
        facts = [f"{_INDENT}{line}" for fact in facts for line in self._wrapped(fact, _INDENT)]
        return [self.able.painted(name, Style.STRONG), *facts]

    def _shown(self, line: _Line) -> _Line:
        return _Line(
            name=self.able.shown(line.name),
            badge=self.able.shown(line.badge),
            style=line.style,
            figures=tuple(map(self.able.shown, line.figures)),
            text=self.able.shown(line.text),
        )

    def _fitted(self, name: int, marks: int, widths: list[int]) -> tuple[int, list[int]]:
        """Widths that fit: names give way first, then the last columns."""
        fixed = len(_INDENT) + len(_GAP) + marks
        widths = list(widths)

        def excess() -> int:
            taken = sum(len(_GAP) + width for width in widths if width)
            return fixed + name + taken - self.width

        name = min(name, max(_NAME, name - excess()))
        while widths and excess() > 0:
            widths.pop()
        return name, widths

    def _drawn(self, line: _Line, name: int, marks: int, widths: Sequence[int]) -> list[str]:
        shown = pad(self.able.shown(line.name, name), name)
        mark = self.able.painted(line.badge, line.style)
        start = f"{_INDENT}{shown}{_GAP}{mark}"
        space = " " * (marks - count_cells(line.badge))
        if line.figures:
            columns = [
                pad(figure, width, right=place in (0, 2))
                for place, (figure, width) in enumerate(zip(line.figures, widths, strict=False))
                if width
            ]
            return [f"{start}{space}{_GAP}{_GAP.join(columns)}".rstrip()]
        column = len(_INDENT) + name + len(_GAP) + max(marks, count_cells(line.badge)) + len(_GAP)
        if self.width - column < _NARROWEST // 2:
            column = 2 * len(_INDENT)
            return [start, *(" " * column + text for text in self._lines(line.text, column))]
        first, *rest = self._lines(line.text, column)
        return [f"{start}{space}{_GAP}{first}".rstrip(), *(" " * column + text for text in rest)]

    # --- Suite --------------------------------------------------------------------------------

    def suite(self, verdicts: Sequence[Verdict], reports: Sequence[str]) -> list[str]:
        """The one line that says how it went, and where to read more."""
        decision = _suite_decision(verdicts)
        word = decision.value if decision else REFUSED
        facts = [_tallied(verdicts), *_spent(verdicts)]
        mark = self.able.painted(word, pick_style(decision))
        lines = self._joined(facts, len(word) + len(_GAP))
        first, *rest = lines
        shown = [f"{mark}{_GAP}{first}", *(" " * (len(word) + len(_GAP)) + one for one in rest)]
        # On lines of their own: how long the run took must not decide where a path is found.
        return shown + [self.able.shown(f"report: {path}") for path in reports]

    def _joined(self, facts: Iterable[str], column: int) -> list[str]:
        """Facts with dots between them, broken there as long as each fits a line."""
        lines: list[str] = []
        for fact in map(self.able.shown, facts):
            longer = f"{lines[-1]}{self.able.dot}{fact}" if lines else fact
            if lines and column + count_cells(longer) <= self.width:
                lines[-1] = longer
            else:
                lines += self._lines(fact, column)
        return lines

    # --- Notes --------------------------------------------------------------------------------

    def notes(self, verdicts: Sequence[Verdict]) -> list[str]:
        """What needs attention, and nothing where nothing does."""
        several = len(verdicts) > 1
        notes = [
            f"{one.contract}: {note}" if several and one.contract else note
            for one in verdicts
            for note in attention(one)
        ]
        if not notes:
            return []
        lines = ["", self.able.painted("Needs attention", Style.STRONG)]
        for note in notes[:_MOST_NOTES]:
            first, *rest = self._wrapped(note, f"{_INDENT}- ")
            lines += [f"{_INDENT}- {first}", *(f"{_INDENT}  {line}" for line in rest)]
        if len(notes) > _MOST_NOTES:
            lines.append(f"{_INDENT}- and {len(notes) - _MOST_NOTES} more, in the report")
        return lines

    def _wrapped(self, text: str, indent: str) -> list[str]:
        return self._lines(self.able.shown(text), len(indent))

    def _lines(self, shown: str, column: int) -> list[str]:
        return wrap_text(shown, self.width - column)


def _lines(verdict: Verdict) -> Iterator[_Line]:
    mean_usd = _mean_usd(verdict)
    for finding in verdict.findings:
        yield _criterion(finding, verdict, mean_usd)
    for constraint in verdict.latency:
        yield _latency(constraint, verdict)
    for gate in verdict.gates:
        yield _gate(gate)


def _criterion(finding: Finding, verdict: Verdict, mean_usd: float | None) -> _Line:
    name, mark, style = finding.criterion, pick_badge(finding), pick_style(finding.decision)
    if finding.advisory:
        mark, style = f"{mark} (advisory)", Style.FAINT
    if finding.by_input:
        return _Line(name=name, badge=mark, style=style, text=_inputs(finding))
    if finding.procedure is Procedure.OBSERVATIONAL or finding.decision is None:
        return _Line(name=name, badge=mark, style=style, text=_sentence(finding))
    rate, interval = pick_rate(finding), pick_interval(finding)
    figures = (
        "" if rate is None else as_observed(rate),
        as_ends(interval) if interval is not None else _known(finding),
        as_count(finding.tally.trials, "trial"),
        _stop(finding, verdict),
        _cost(finding, verdict, mean_usd),
    )
    return _Line(name=name, badge=mark, style=style, figures=figures)


def _known(finding: Finding) -> str:
    """What stands for the interval of a corpus that was tried whole."""
    from trialwise.stats.finite import ExactCorpusRate

    return "known" if isinstance(finding.design, ExactCorpusRate) else ""


def _sentence(finding: Finding) -> str:
    tally = finding.tally
    if finding.decision is None:
        return ", ".join(finding.refusals) or finding.statement
    if not tally.trials:
        return "no trial was available"
    if tally.failed:
        return f"{tally.failed:,} of {tally.trials:,} failed"
    failed = "" if finding.label else " failed"
    return f"0 of {tally.trials:,}{failed} (no claim about the population)"


def _inputs(finding: Finding) -> str:
    """How many inputs pass, and which do not, worst first."""
    parts = finding.by_input
    passing = sum(part.decision is Decision.PASS for part in parts)
    text = f"{passing:,} of {as_count(len(parts), 'input')} PASS"
    for decision in (Decision.FAIL, Decision.INCONCLUSIVE):
        left = [part for part in parts if (part.decision or Decision.INCONCLUSIVE) is decision]
        left.sort(key=lambda part: (part.tally.rate or 0.0, -part.tally.trials))
        named = [
            f"{part.input_id or '?'} ({part.tally.passed}/{part.tally.trials})"
            for part in left[:_NAMED_INPUTS]
        ]
        if len(left) > _NAMED_INPUTS:
            named.append(f"{len(left) - _NAMED_INPUTS:,} more")
        if named:
            text += f"; {decision}: {', '.join(named)}"
    return text


def _stop(finding: Finding, verdict: Verdict) -> str:
    ended = {one.name: one.stop for one in verdict.experiments}
    return STOPS[finding.stop or ended.get(finding.experiment, verdict.stop)].label


def _mean_usd(verdict: Verdict) -> float | None:
    spent = verdict.spending
    return spent.usd / spent.trials if spent.usd is not None and spent.trials else None


def _cost(finding: Finding, verdict: Verdict, mean_usd: float | None) -> str:
    """What its trials cost: criteria share them, so a part of them is priced at the mean."""
    if mean_usd is None:
        return ""
    exact = finding.tally.trials == verdict.spending.trials
    return f"{'' if exact else '~'}{as_money(mean_usd * finding.tally.trials)}"


def _latency(finding: LatencyFinding, verdict: Verdict) -> _Line:
    parts = []
    if finding.observed is not None:
        parts.append(as_seconds(finding.observed))
    if finding.threshold is not None:
        parts.append(f"limit {as_seconds(finding.threshold)}")
    parts.append(f"{finding.trials:,} success{'' if finding.trials == 1 else 'es'}")
    marks = ", ".join(list_latency_marks(finding, verdict))
    return _Line(
        name=f"latency {finding.constraint}",
        badge=pick_badge(finding),
        style=pick_style(finding.decision),
        text=", ".join(parts) + (f" ({marks})" if marks else ""),
    )


def _gate(gate: GateFinding) -> _Line:
    """Its numbers and what was asked of them; of what is only reported, the means."""
    said = "; ".join(
        f"{one.target.partition('.')[2]} {one.shown}, {one.matcher}" for one in gate.checks
    )
    kind = "heuristic" if len(gate.heuristics) == len(gate.checks) else "no error rate"
    return _Line(
        name=gate.gate,
        badge=gate.decision.value if gate.decision else "REPORTED",
        style=pick_style(gate.decision) if gate.decision else Style.FAINT,
        text=f"{said} ({runs_of(gate)}, {kind})" if said else reported(gate),
    )


def _suite_decision(verdicts: Sequence[Verdict]) -> Decision | None:
    """A failure was shown whatever was refused; without one, a refusal leaves no decision."""
    decision = combine(one.decision for one in verdicts if one.decision)
    refused = any(one.decision is None for one in verdicts)
    return None if refused and decision is not Decision.FAIL else decision


def _tallied(verdicts: Sequence[Verdict]) -> str:
    """How many contracts, or criteria of the only one, did not pass."""
    parts: list[Verdict | Finding | LatencyFinding | GateFinding] = [*verdicts]
    noun = " contracts"
    if len(verdicts) == 1:
        verdict = verdicts[0]
        enforced = () if Dimension.LATENCY in verdict.advisory else verdict.latency
        gates = [gate for gate in verdict.gates if gate.decision is not None]
        counting = [one for one in verdict.findings if not one.advisory]
        parts = [*counting, *enforced, *gates]
        if not parts:
            noun = "criterion advises" if len(verdict.findings) == 1 else "criteria advise"
            return f"nothing decides: {len(verdict.findings)} {noun}"
        noun = "" if enforced or gates else " criterion" if len(parts) == 1 else " criteria"
    total = f"{len(parts)}{noun}"
    words = {Decision.FAIL: "failed", Decision.INCONCLUSIVE: "undecided", None: "refused"}
    decisions = [part.decision for part in parts]
    told = [(decisions.count(which), word) for which, word in words.items() if which in decisions]
    if not told:
        return f"{'all ' if len(parts) > 1 else ''}{total} passed"
    (count, word), *rest = told
    return ", ".join([f"{count} of {total} {word}", *(f"{n} {word}" for n, word in rest)])


def _spent(verdicts: Sequence[Verdict]) -> Iterator[str]:
    spent = [verdict.spending for verdict in verdicts]
    trials = sum(one.trials for one in spent) or max(
        (f.tally.trials for v in verdicts for f in v.findings), default=0
    )
    yield as_count(trials, "trial")
    took = sum(one.seconds for one in spent)
    if took > 0:
        yield as_duration(took)
    known = [one.usd for one in spent if one.usd is not None]
    if known:
        yield as_money(sum(known))
    setup = sum(one.setup_usd or 0.0 for one in spent)
    if setup:
        yield f"{as_money(setup)} setup"
    judging = sum(one.judging_usd or 0.0 for one in spent)
    if judging:
        yield f"{as_money(judging)} judges"
