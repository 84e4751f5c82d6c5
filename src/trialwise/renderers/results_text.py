"""What a run concluded, for a terminal or a log: a line a criterion, the suite, what needs a look.

Words carry every meaning; colour only repeats it. At 80 columns a criterion keeps its line; on a
narrower terminal the line loses its last columns, never its verdict.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from trialwise.documents import results
from trialwise.documents.numbers import as_count
from trialwise.documents.printable import count_cells, pad, wrap_text
from trialwise.renderers.capabilities import Capabilities, Style, pick_style
from trialwise.renderers.document_text import GAP, INDENT, NARROWEST, TextWriter

#: A name is not shortened below this.
_NAME = 10
#: A name longer than this makes room for the numbers.
_LONGEST_NAME = 28
#: The rate, its interval, what is required and the trials: they are left out last.
_KEPT = 4
#: Criteria that are explained, reasons of each, and lines of an input or a reply.
_MOST_EXPLAINED, _MOST_REASONS, _MOST_TEXT = 3, 4, 3
#: What needs attention beyond this many lines is read in the report.
_MOST_NOTES = 15


@dataclass(frozen=True, slots=True)
class _Line:
    """A line as the stream can show it: its badge, and its figures or a sentence."""

    name: str
    badge: str
    style: Style | None
    figures: tuple[str, ...]
    sentence: str
    below: tuple[str, ...] = ()


def render_results(
    suite: results.SuiteResults,
    *,
    capabilities: Capabilities | None = None,
    folders: Sequence[str] = (),
) -> str:
    """Render the results of a suite as text.

    Args:
        suite: What to show.
        capabilities: What the stream can do; plain ASCII of 80 columns where not given.
        folders: Where the runs are kept; a path is never shortened.
    """
    page = _Page(capabilities or Capabilities())
    # What could not be measured stands above everything else.
    lines = [line for run in suite.runs if run.headline for line in page.fill(run.headline)]
    lines += page.draw_lines(suite.runs)
    lines += [*page.draw_outcome(suite, folders), *page.draw_failures(suite)]
    return "\n".join([*lines, *page.draw_notes(suite)]) + "\n"


def _summary_lines(run: results.RunResults) -> list[results.ResultLine]:
    """Return the lines worth showing: neither inputs nor the run itself have one."""
    hidden = (results.LineKind.INPUT, results.LineKind.RUN)
    return [line for line in run.lines if line.kind not in hidden]


class _Page(TextWriter):
    """The lines of a summary, measured and painted for one stream."""

    # --- Criteria -----------------------------------------------------------------------------

    def draw_lines(self, runs: Sequence[results.RunResults]) -> list[str]:
        """Draw every contract's heading and lines, in one alignment."""
        shown = ((run, [*map(self._show, _summary_lines(run))]) for run in runs)
        blocks = [(self._draw_heading(run), lines) for run, lines in shown]
        every = [line for _, lines in blocks for line in lines]
        table = [line for line in every if line.figures]
        marks = max((count_cells(line.badge) for line in table), default=4)
        columns = zip(*(line.figures for line in table), strict=True)
        widths = [max(map(count_cells, column)) for column in columns]
        # A label may be longer than the verdicts of the table, but has to fit beside a name too.
        longest = max((count_cells(line.badge) for line in every), default=0)
        room = self.width - len(INDENT) - len(GAP) - longest
        name = min(max((count_cells(line.name) for line in every), default=0), _LONGEST_NAME, room)
        name, widths = self._fit_widths(name, marks, widths)
        drawn: list[str] = []
        for heading, lines in blocks:
            drawn += heading
            for line in lines:
                drawn += self._draw(line, name, marks, widths)
        return drawn

    def _draw_heading(self, run: results.RunResults) -> list[str]:
        name = self.able.show(run.contract or "contract", self.width)
        rest = self.able.show(self.able.dot.join(["", *run.headings]))
        if count_cells(name) + count_cells(rest) <= self.width:
            faint = self.able.paint(rest, Style.FAINT)
            return [f"{self.able.paint(name, Style.STRONG)}{faint}"]
        facts = [line for fact in run.headings for line in self.fill(fact, INDENT)]
        return [self.able.paint(name, Style.STRONG), *facts]

    def _show(self, line: results.ResultLine) -> _Line:
        word = line.word if line.kind is results.LineKind.CRITERION else line.label
        figures = () if line.sentence or line.figures is None else line.figures.columns
        name, badge, sentence = map(self.able.show, (line.name, word, line.sentence))
        shown, style = tuple(map(self.able.show, figures)), pick_style(line.tone)
        return _Line(name, badge, style, shown, sentence, line.below)

    def _fit_widths(self, name: int, marks: int, widths: list[int]) -> tuple[int, list[int]]:
        """Widths that fit: columns after the trials give way first, then names, then the others."""
        fixed = len(INDENT) + len(GAP) + marks
        widths = list(widths)

        def excess() -> int:
            taken = sum(len(GAP) + width for width in widths if width)
            return fixed + name + taken - self.width

        while len(widths) > _KEPT and excess() > 0:
            widths.pop()
        name = min(name, max(_NAME, name - excess()))
        while widths and excess() > 0:
            widths.pop()
        return name, widths

    def _draw(self, line: _Line, name: int, marks: int, widths: Sequence[int]) -> list[str]:
        below = [one for text in line.below for one in self.fill(text, 2 * INDENT)]
        return [*self._draw_row(line, name, marks, widths), *below]

    def _draw_row(self, line: _Line, name: int, marks: int, widths: Sequence[int]) -> list[str]:
        shown = pad(self.able.show(line.name, name), name)
        mark = self.able.paint(line.badge, line.style)
        start = f"{INDENT}{shown}{GAP}{mark}"
        space = " " * (marks - count_cells(line.badge))
        if line.figures:
            cells = [*enumerate(zip(line.figures, widths, strict=False))]
            columns = [pad(text, wide, right=k in (0, 3)) for k, (text, wide) in cells if wide]
            return [f"{start}{space}{GAP}{GAP.join(columns)}".rstrip()]
        column = len(INDENT) + name + len(GAP) + max(marks, count_cells(line.badge)) + len(GAP)
        if self.width - column >= NARROWEST // 2:
            return self._hang(f"{start}{space}{GAP}", line.sentence, column)
        return [start, *self._hang(2 * INDENT, line.sentence, 2 * len(INDENT))]

    # --- Suite --------------------------------------------------------------------------------

    def draw_outcome(self, suite: results.SuiteResults, folders: Sequence[str]) -> list[str]:
        """Draw the one line that says how it went, and where to read more."""
        word = suite.status.value
        mark = self.able.paint(word, pick_style(suite.status.tone))
        column = len(word) + len(GAP)
        first, *rest = self._join(suite.outcome, column)
        lines = [f"{mark}{GAP}{first}", *(" " * column + one for one in rest)]
        if suite.bounds:
            lines += self.fill(" ".join(suite.bounds), style=Style.FAINT)
        # On lines of their own: how long the run took must not decide where a path is found.
        return lines + [self.able.show(f"kept in {one}") for one in folders]

    def _join(self, facts: Iterable[str], column: int) -> list[str]:
        """Facts with dots between them, broken there as long as each fits a line."""
        lines: list[str] = []
        for fact in map(self.able.show, facts):
            longer = f"{lines[-1]}{self.able.dot}{fact}" if lines else fact
            if lines and column + count_cells(longer) <= self.width:
                lines[-1] = longer
            else:
                lines += wrap_text(fact, self.width - column)
        return lines

    # --- Failures -----------------------------------------------------------------------------

    def draw_failures(self, suite: results.SuiteResults) -> list[str]:
        """Draw why each red criterion is red: its reasons, one example, and where to see more."""
        lines: list[str] = []
        for run in suite.runs:
            red = [line for line in _summary_lines(run) if line.is_red and line.failures]
            if run.headline or not red:
                continue
            for line in red[:_MOST_EXPLAINED]:
                lines += ["", *self._explain(line, run if len(suite.runs) > 1 else None)]
            if len(red) > _MOST_EXPLAINED:
                more = as_count(len(red) - _MOST_EXPLAINED, "more criterion", "more criteria")
                lines += ["", f"And {more}."]
            if run.next_command:
                lines += ["", self.able.show(f"Every failing trial:  {run.next_command}")]
            if run.rerun_command:
                again = f"{run.rerun_command} {red[0].failures[0].trial}"
                lines += [self.able.show(f"That trial again:     {again}")]
        return lines

    def _explain(self, line: results.ResultLine, run: results.RunResults | None) -> list[str]:
        name = line.name if run is None else f"{run.contract}: {line.name}"
        required = "" if line.figures is None else line.figures.required
        word = "is undecided" if line.status is results.Status.INCONCLUSIVE else "failed"
        title = self.able.show(f"Why {name} {word}" + (f" ({required})" if required else ""))
        lines = [self.able.paint(title, Style.STRONG)]
        times = "×" if self.able.unicode else "x"
        for group in line.failures[:_MOST_REASONS]:
            text = self.able.show(f"{group.count} {times} {group.headline}")
            lines += self._hang(INDENT, text, 2 * len(INDENT))
        others = sum(group.count for group in line.failures[_MOST_REASONS:])
        if others:
            lines.append(f"{INDENT}{others} {times} for other reasons")
        for check in line.checks[:_MOST_REASONS]:
            lines += self.fill(f"check {check.sentence}", INDENT)
        return [*lines, *self._draw_example(line.failures[0])]

    def _draw_example(self, group: results.FailureGroup) -> list[str]:
        lines = [f"{INDENT}{self.able.show(f'For example {group.where}:', self.width - 2)}"]
        labels = max((len(label) for label, _ in group.exchange), default=0)
        column = 2 * len(INDENT) + labels + len(GAP)
        for label, text in group.exchange:
            room = _MOST_TEXT * max(20, self.width - column)
            # Line breaks of a reply are those of its JSON more often than anybody's.
            shown = self.able.show(" ".join(text.split()), room)
            lines += self._hang(f"{2 * INDENT}{label:{labels}}{GAP}", shown, column)
        raised = group.traceback.splitlines()
        return lines + [f"{2 * INDENT}{self.able.show(one)}".rstrip() for one in raised]

    # --- Notes --------------------------------------------------------------------------------

    def draw_notes(self, suite: results.SuiteResults) -> list[str]:
        """Draw what needs attention, and nothing where nothing does."""
        several = len(suite.runs) > 1
        notes: list[str] = []
        for run in suite.runs:
            start = f"{run.contract}: " if several and run.contract else ""
            notes += (f"{start}{note}" for note in run.attention if note != run.headline)
        if not notes:
            return []
        lines = ["", self.able.paint("Needs attention", Style.STRONG)]
        for note in notes[:_MOST_NOTES]:
            lines += self.fill(note, f"{INDENT}- ")
        if len(notes) > _MOST_NOTES:
            lines.append(f"{INDENT}- and {len(notes) - _MOST_NOTES} more, in the report")
        return lines

    def _hang(self, lead: str, shown: str, column: int) -> list[str]:
        """Break a text into lines, of which all but the first begin at a column."""
        first, *rest = wrap_text(shown, self.width - column)
        return [f"{lead}{first}".rstrip(), *(" " * column + one for one in rest)]
