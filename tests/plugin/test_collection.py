"""What cannot be run is an error of the collection: with its place, what is wrong, the way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trialwise.model.verdict import Decision

if TYPE_CHECKING:
    from tests.plugin.conftest import Project


@pytest.mark.parametrize(
    ("marker", "said"),
    [
        (
            "20, at_least=0.95",
            "passes: 20 trials cannot show a rate above 0.95 at confidence 0.95*At least 59*",
        ),
        (
            "at_least=0.9, max_trials=5",
            "passes: 5 trials cannot show a rate above 90 %: at least 29 passing trials *",
        ),
        (  # 0.9 ** 28 is 0.052
            "at_least=0.9, max_trials=28",
            "passes: 28 trials cannot show a rate above 90 %: at least 29 passing trials *",
        ),
        ("no_worse_than='baseline', trials=200", "*no baseline of the contract*"),
        ("at_leats=0.9", "@pytest.mark.trials has no 'at_leats': did you mean 'at_least'?"),
        ("", "@pytest.mark.trials asks nothing: say at_least=0.9, *"),
        ("at_least=1.0", "at_least must be below 1: *so ask for never_fails, got 1.0"),
        ("at_least=0.9, never_fails=True", "the question of 'passes' must be exactly one of *"),
        ("50, 60, at_least=0.9", "@pytest.mark.trials takes the number of trials and otherwise *"),
        ("50, trials=50, at_least=0.9", "@pytest.mark.trials is given the number of trials twice"),
        ("50, at_least=0.9, max_trials=60", "max_trials must be left out where trials fixes *"),
        (
            "no_worse_than='baseline', max_trials=60",
            "max_trials must go with at_least or never_fails: *",
        ),
        ("0, never_fails=True", "trials must be a whole number of at least 1, got 0"),
        (
            "50, polite={'at_leest': 0.9}",
            "criterion 'polite' of @pytest.mark.trials has no 'at_leest': did you mean *",
        ),
        ("50, polite={'at_least': 2}", "criterion 'polite': *strictly *got 2; did you mean 0.02*"),
        ("50, criteria=[1]", "criteria must hold a dict by name, got [[]1[]]"),
        ("50, passes={'at_least': 0.5}", "criterion 'passes' *has the name of the body's own*"),
        ("50, never_fails=True, budget={'euro': 3}", "the budget of *has no 'euro': it knows *"),
        ("50, never_fails=True, latency={'p80': 3}", "the latency of *has no 'p80': did you *"),
        ("50, never_fails=True, inputs=[]", "inputs must hold at least one input, got [[][]]"),
        ("50, never_fails=True, concurrency=0", "concurrency must be a whole number *got 0"),
        ("50, never_fails=True, intent='guess'", "intent must be one of *got 'GUESS'"),
    ],
    ids=lambda value: value.split("*")[0] if isinstance(value, str) else "",
)
def test_a_marker_that_cannot_be_meant(project: Project, marker: str, said: str) -> None:
    """File, line, test and reason; nothing of the module is run."""
    project.write(
        f"""
        import pytest
        from notes import note

        def test_other(): note("ran")

        @pytest.mark.trials({marker})
        def test_it(): note("ran")
        """
    )

    result = project.run()

    assert pytest.ExitCode.INTERRUPTED == result.ret
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*ERROR collecting test_it.py*", "test_it.py:7: test_it: *"])
    result.stdout.fnmatch_lines([f"*{said}"])
    assert 1 == result.stdout.str().count("test_it.py:7: test_it:")
    assert [] == project.notes()


def test_every_wrong_test_of_a_module_or_class_is_named(project: Project) -> None:
    """All of them at once, each with its line; other modules can still be run."""
    project.write(
        """
        import pytest

        def test_plain(): pass

        class TestIt:
            @pytest.mark.trials(at_leats=0.9)
            def test_one(self): pass

            @pytest.mark.trials(5, at_least=0.9)
            @pytest.mark.parametrize("n", [1, 2])
            def test_two(self, n): pass
        """
    )
    project.write("def test_fine(): pass", "test_fine.py")

    result = project.run("--continue-on-collection-errors")

    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        [
            "test_it.py:7: TestIt.test_one: *",
            "test_it.py:10: TestIt.test_two[[]1[]]: *",
            "test_it.py:10: TestIt.test_two[[]2[]]: *",
        ]
    )


def test_smoke_intent_runs_what_verification_refuses(project: Project) -> None:
    """A smoke run may be small."""
    record = project.judge(
        """
        import pytest

        @pytest.mark.trials(5, at_least=0.9, intent="smoke")
        def test_it(): pass
        """
    )

    assert 5 == len(record.trials)


def test_two_markers_and_a_marker_for_reruns_are_refused(project: Project) -> None:
    """One test, one question; and a decided test is not to be run until it passes."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(50, at_least=0.9)
        @pytest.mark.trials(50, never_fails=True)
        def test_twice(): pass

        @pytest.mark.flaky(reruns=3)
        @pytest.mark.trials(50, never_fails=True)
        def test_flaky(): pass
        """
    )

    result = project.run("-p", "rerunfailures")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        [
            "test_it.py:4: test_twice: the test is marked trials twice: *",
            "test_it.py:8: test_flaky: *flaky and @pytest.mark.trials exclude each other: *",
        ]
    )


def test_tests_marked_by_a_conftest_are_judged(project: Project) -> None:
    """A marker that is added after collection counts, and is checked as well."""
    project.write(
        """
        import pytest

        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.trials(6, never_fails=True))
        """,
        "conftest.py",
    )
    project.write("def test_it(): pass")

    project.run().assert_outcomes(passed=1)

    (record,) = project.records()
    assert 6 == len(record.trials)
    conftest = project.path / "conftest.py"
    conftest.write_text(conftest.read_text().replace("never_fails", "never_fail"))
    result = project.run()
    assert pytest.ExitCode.USAGE_ERROR == result.ret
    result.stderr.fnmatch_lines(["ERROR: test_it.py:1: test_it: *did you mean 'never_fails'?"])


def test_only_python_tests_can_be_judged(project: Project) -> None:
    """A marker on anything else is refused."""
    project.write(
        """
        import pytest

        class Item(pytest.Item):
            def runtest(self): pass

        class File(pytest.File):
            def collect(self):
                item = Item.from_parent(self, name="it")
                item.add_marker(pytest.mark.trials(5, never_fails=True))
                yield item

        def pytest_collect_file(file_path, parent):
            if file_path.suffix == ".txt":
                return File.from_parent(parent, path=file_path)
        """,
        "conftest.py",
    )
    (project.path / "some.txt").touch()

    result = project.run("some.txt")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*@pytest.mark.trials is for test functions and methods"])


def test_the_marker_is_known_to_strict_sessions(project: Project) -> None:
    """`--strict-markers` accepts it, and `--markers` explains it."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(4, never_fails=True)
        def test_it(): pass
        """
    )

    project.run("--strict-markers").assert_outcomes(passed=1)
    project.run("--markers").stdout.fnmatch_lines(["@pytest.mark.trials(trials, *"])


@pytest.mark.slow
def test_what_plain_markers_mean(project: Project) -> None:
    """The four lines of the guide: sequential, compliance, regression, observational."""
    project.write(
        """
        import pytest

        @pytest.mark.trials(at_least=0.9, max_trials=50)
        def test_sequential(): pass

        @pytest.mark.trials(200, at_least=0.95, origin="SLO")
        def test_compliance(): pass

        @pytest.mark.trials(no_worse_than="baseline", trials=200)
        def test_regression(): pass

        @pytest.mark.trials(never_fails=True, trials=300)
        def test_observational(): pass
        """
    )
    project.run("--trialwise-measure", "-k", "regression").assert_outcomes(passed=1)

    project.run().assert_outcomes(passed=4)

    found = {
        one.plan.contract.split("::")[1]: (
            str(one.plan.criteria[0].procedure),
            one.plan.max_trials,
            str(one.plan.criteria[0].threshold.origin),
        )
        for one in project.records()
    }
    assert {
        "test_sequential": ("SEQUENTIAL", 50, "UNSPECIFIED"),
        "test_compliance": ("COMPLIANCE", 200, "SLO"),
        "test_regression": ("REGRESSION", 200, "EMPIRICAL"),
        "test_observational": ("OBSERVATIONAL", 300, "UNSPECIFIED"),
    } == found
    assert {Decision.PASS} == {one.verdict.decision for one in project.records()}
