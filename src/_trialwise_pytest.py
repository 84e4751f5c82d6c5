"""The door between pytest and trialwise: everything that pytest must know before a test is marked.

It is outside the package and imports nothing of it: a session without the marker pays for this
file alone. With the first test marked `trials` that is collected,
`trialwise.plugin` is imported and registered.
"""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator
    from typing import Any

    from trialwise.plugin.hooks import TrialwisePlugin
    from trialwise.plugin.marked_test import Workbench
    from trialwise.plugin.trial_fixture import TrialHandle

_NAME = "trialwise-session"
_MARKER = (
    "trials(trials, *, at_least, no_worse_than, never_fails, max_trials, ...): run the test many "
    "times and decide how often it passes (trialwise)."
)

# The settings of runs, for a command line and an ini file: name, kind and what they mean.
# Written by `make stubs` from here
# fmt: off
SETTINGS: tuple[tuple[str, str, str], ...] = (
    ("trials", "count", "A fixed number of trials for every criterion, or one for each sampling."),
    ("max-trials", "count", "Upper limit on trials where no number is fixed."),
    ("intent", "verification|smoke", "`verification` refuses weak designs; `smoke` is a quick check."),
    ("rule", "exact|wilson|fisher", "The rule set for every decision."),
    ("analysis", "measured|intent-to-treat|per-protocol", "Which trials decide: `measured` asks again what never reached the service, `intent-to-treat` counts it as failed, `per-protocol` also leaves out empty runs."),
    ("seed", "integer", "Seed for the order of inputs and for each trial."),
    ("draw", "balanced|independent", "How inputs are drawn."),
    ("concurrency", "count", "Number of concurrent trials."),
    ("executor", "text", "Where trials run: `local`, `processes` for services that keep a processor busy, `dask` or `ray`; an address follows a colon, such as `dask:tcp://scheduler:8786`."),
    ("cost-per-trial", "money", "What a trial costs where the service does not tell. A budget reserves it for each trial in flight."),
    ("override", "names", "Codes of major caveats to accept under verification."),
    ("smoke-refuses", "nothing|hard|major", "What refuses a smoke run, too, instead of a warning: `hard` invalidators of a comparison, or also `major` caveats."),
    ("baseline", "text", "The identifier of the baseline to compare with."),
    ("horizon", "count", "Number of recurring runs over which wrong verdicts are bounded (§8.5), or `gates` or `days`."),
    ("correction", "none|bonferroni|holm|bh|by|e-bh", "How decisions that belong together are corrected for their number."),
    ("family", "text", "Name of the decisions that are corrected together; contracts may share it."),
    ("family-size", "count", "Number of decisions in the family, where more belong to it than are run here."),
    ("confidence", "rate", "1 − the largest probability of a wrong PASS, and of a wrong FAIL."),
)
# fmt: on
# to here.
#: The settings of a session, likewise: name, metavar or choices, and what they mean.
SESSION: tuple[tuple[str, str, str], ...] = (
    ("budget-trials", "count", "upper limit on trials of the whole session, over all workers"),
    ("budget-usd", "money", "upper limit on money for the whole session"),
    ("budget-seconds", "time", "time limit for the trials of the whole session"),
    ("baselines", "DIR", "the folder baselines are kept in (default: baselines)"),
    ("store", "DIR", "the folder runs are kept in (default: .trialwise)"),
    ("inconclusive", "fail|skip|xfail|pass", "how pytest reports an INCONCLUSIVE test"),
    ("html", "FILE", "write one HTML report of all marked tests"),
    ("summary", "FILE", "append a Markdown summary of all marked tests"),
)
#: Settings of one session, which no ini file should hold.
_SWITCHES = (
    ("measure", "measure baselines with the marked tests instead of deciding them"),
    ("plan", "print what the marked tests would run and cost, and run nothing"),
    (
        "resume",
        "resume tests that were killed, interrupted or stopped by a budget; keep finished ones",
    ),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare `--trialwise-…` and the ini settings of the same names."""
    group = parser.getgroup("trialwise", "trialwise: tests that are run many times and decided")
    for name, kind, text in (*SETTINGS, *SESSION):
        shown: dict[str, Any] = (
            {"choices": kind.split("|")} if "|" in kind else {"metavar": kind.upper()}
        )
        # Amounts such as 90% are read once trialwise is loaded.
        group.addoption(f"--trialwise-{name}", default=None, help=text.replace("%", "%%"), **shown)
        parser.addini(f"trialwise_{name.replace('-', '_')}", help=text, default=None)
    for name, text in _SWITCHES:
        group.addoption(f"--trialwise-{name}", action="store_true", default=False, help=text)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """A plan is printed by one process."""
    if config.getoption("trialwise_plan") and hasattr(config.option, "numprocesses"):
        # Before pytest-xdist has looked at it, and after.
        config.option.numprocesses, config.option.dist, config.option.tx = 0, "no", []


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Plan the marked tests of a module or class; what cannot be run is an error of it."""
    report = yield
    marked = [one for one in report.result or () if isinstance(one, pytest.Item) and _marked(one)]
    if marked and report.passed:
        _loaded(collector.config).admit(marked, report)
    return report


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Plan what was marked after it was collected, such as by a conftest."""
    marked = [item for item in items if _marked(item)]
    if marked:
        _loaded(config).admit(marked)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """With `--trialwise-plan`, print instead of running."""
    broken = session.testsfailed and not session.config.option.continue_on_collection_errors
    if not session.config.getoption("trialwise_plan") or broken:
        return None
    if any(map(_marked, session.items)):
        _loaded(session.config).print_plans(session.items)
    return True


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker of pytest-xdist where the session's workers meet."""
    manager = node.config.pluginmanager
    controller = manager.get_plugin(_Controller.name)
    if controller is None:
        controller = _Controller(node.config)
        manager.register(controller, _Controller.name)
    node.workerinput["trialwise_folder"] = controller.folder


class _Controller:
    """What a session of several workers has beside them: their meeting place and their results."""

    name = "trialwise-controller"

    def __init__(self, config: pytest.Config) -> None:
        from tempfile import TemporaryDirectory

        self._config = config
        self._temporary = TemporaryDirectory(prefix="trialwise-", ignore_cleanup_errors=True)
        self.folder = self._temporary.name

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Load the rest with the first judged test that a worker reports."""
        if hasattr(report, "trialwise") and not self._config.pluginmanager.has_plugin(_NAME):
            # Registered too late to hear this one by itself.
            _loaded(self._config).pytest_runtest_logreport(report)

    def pytest_unconfigure(self) -> None:
        """Remove the meeting place."""
        self._temporary.cleanup()


@pytest.fixture
def trial(request: pytest.FixtureRequest) -> TrialHandle:
    """The trial under way, in a test marked `trials`.

    `trial.index`, `trial.input`, `trial.seed`; `trial.check("name", condition)` for a criterion of
    its own; `trial.record(tokens=…, cost=…, latency_s=…)` for what it took.
    """
    found: TrialHandle | None = getattr(request.node, "trial", None)
    if found is None:
        pytest.fail("the trial fixture is for tests marked @pytest.mark.trials(...)", pytrace=False)
    return found


@pytest.fixture
def trialwise(request: pytest.FixtureRequest) -> Workbench:
    """trialwise inside a test: its public names, with the folders and settings of this session.

    `trialwise.verify(contract, inputs=…)` runs a contract and fails the test unless it passes;
    `trialwise.run(…)` runs it and leaves the conclusion to the test. In the same way
    `trialwise.verify_comparison(control, candidate, …)` and `trialwise.compare(…)` compare services.
    """
    return _loaded(request.config).workbench(request.node)


def _marked(item: pytest.Item) -> bool:
    if item.get_closest_marker("trials") is None:
        return False
    from trialwise.plugin.admission import is_marked

    return is_marked(item)


def _loaded(config: pytest.Config) -> TrialwisePlugin:
    """The session's own plugin, imported on first use."""
    known: TrialwisePlugin | None = config.pluginmanager.get_plugin(_NAME)
    if known is not None:
        return known
    from trialwise.plugin.hooks import TrialwisePlugin

    plugin = TrialwisePlugin(config)
    config.pluginmanager.register(plugin, _NAME)
    return plugin
