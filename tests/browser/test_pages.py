"""Pages in a real browser: they render, ask for nothing, and can be used by all."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from tests.pages import compared_arms
from tests.reports.run_records import SHAPES, fixed_fail

from trialwise.pages.run_report import render_html
from trialwise.pages.sizing import build_sizing_page
from trialwise.procedures.comparison import COMPARISON
from trialwise.procedures.sizing.sequential_sizing import SequentialQuestion, plan_sequential
from trialwise.renderers.html.page_frame import render_document
from trialwise.runtime.answers import Comparison

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="there is no chromium on this machine")

COMPARED = ("comparison", "three-arms", "hostile-arms")
SUITE = ("fixed-fail", "sequential-pass", "observational")
PHONE, DESK = 390, 1280


@dataclass
class Visit:
    """A page that was opened, with what the browser said about it."""

    page: Any
    address: str
    complaints: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Open = Callable[..., Any]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reports")


@pytest.fixture
def visit(browser: Any, folder: Path) -> Open:
    """Opens the report of a shape; `width` and what a browser context takes may be given."""

    @contextmanager
    def opened(shape: str, *, width: int = DESK, **context: Any) -> Iterator[Visit]:
        file = folder / f"{shape}.html"
        if not file.exists():
            file.write_text(_rendered(shape), encoding="utf-8")
        made = browser.new_context(viewport={"width": width, "height": 900}, **context)
        page = made.new_page()
        visited = Visit(page, file.as_uri())
        page.on("console", lambda message: visited.complaints.append(message.text))
        page.on("pageerror", lambda error: visited.complaints.append(str(error)))
        page.on("request", lambda request: visited.requests.append(request.url))
        page.on("dialog", lambda dialog: visited.complaints.append(dialog.message))
        page.goto(visited.address)
        yield visited
        made.close()

    return opened


def _rendered(shape: str) -> str:
    if shape == "suite":
        return render_html([SHAPES[name]() for name in SUITE], title="Nightly")
    if shape == "plan":
        question = SequentialQuestion(rate=0.9, alternative=0.8, max_trials=50)
        return render_document(build_sizing_page(plan_sequential(question)))
    if shape == "comparison":
        return Comparison(compared_arms.verdict(), compared_arms.arms()).render("html")
    if shape == "three-arms":
        return Comparison(compared_arms.verdict(3), compared_arms.arms(3)).render("html")
    if shape == "hostile-arms":
        arms = compared_arms.arms(3, hostile=True)
        return Comparison(COMPARISON.decide(arms), arms).render("html")
    return render_html(SHAPES[shape]())


@pytest.mark.slow(
    "sequential-pass",
    "fixed-fail",
    "regression-inconclusive",
    "each-input",
    "budget-stop",
    "agent",
    "judged",
    "hostile",
    "suite",
    "plan",
    "three-arms",
    "hostile-arms",
)
@pytest.mark.parametrize("shape", [*SHAPES, "suite", "plan", *COMPARED])
def test_the_page_renders_and_asks_the_network_for_nothing(visit: Open, shape: str) -> None:
    """No console message, no error, no dialog, one request: the page itself. Nothing overflows."""
    with visit(shape, width=PHONE) as seen:
        assert seen.page.locator("main .decision").first.is_visible()
        for width in (PHONE, 768, DESK):
            seen.page.set_viewport_size({"width": width, "height": 900})
            reach = seen.page.evaluate("document.documentElement.scrollWidth")
            assert reach <= width

    assert [] == seen.complaints
    assert [seen.address] == seen.requests


@pytest.mark.slow(
    "each-input-1280-light", "regression-inconclusive-390-dark", "comparison-1280-light"
)
@pytest.mark.parametrize(
    ("shape", "width", "scheme"),
    [
        ("each-input", DESK, "light"),
        ("regression-inconclusive", PHONE, "dark"),
        ("agent", PHONE, "dark"),
        ("comparison", DESK, "light"),
        pytest.param("comparison", PHONE, "dark", marks=pytest.mark.slow),
        pytest.param("three-arms", DESK, "dark", marks=pytest.mark.slow),
        pytest.param("hostile-arms", PHONE, "light", marks=pytest.mark.slow),
        pytest.param("agent", DESK, "light", marks=pytest.mark.slow),
        pytest.param("fixed-fail", DESK, "light", marks=pytest.mark.slow),
        pytest.param("fixed-fail", PHONE, "dark", marks=pytest.mark.slow),
        pytest.param("latency", DESK, "dark", marks=pytest.mark.slow),
        pytest.param("hostile", DESK, "light", marks=pytest.mark.slow),
        pytest.param("suite", DESK, "light", marks=pytest.mark.slow),
        pytest.param("refused", PHONE, "dark", marks=pytest.mark.slow),
        pytest.param("plan", DESK, "light", marks=pytest.mark.slow),
        pytest.param("plan", PHONE, "dark", marks=pytest.mark.slow),
    ],
)
def test_axe_finds_no_violation(visit: Open, shape: str, width: int, scheme: str) -> None:
    """With everything unfolded, so that what is hidden at first is checked too."""
    axe = files("axe_playwright_python").joinpath("axe.min.js").read_text("utf-8")
    with visit(shape, width=width, color_scheme=scheme) as seen:
        seen.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        seen.page.evaluate(axe)
        found = seen.page.evaluate("axe.run(document, {resultTypes: ['violations']})")

    assert found["passes"]
    told = [
        (one["id"], [node["html"][:200] for node in one["nodes"][:3]])
        for one in found["violations"]
    ]
    assert [] == told


def test_hostile_strings_stay_text(visit: Open) -> None:
    """Nothing a service said became an element, ran, or turned the writing round."""
    with visit("hostile") as seen:
        assert 0 == seen.page.locator("img").count()
        assert 1 == seen.page.locator("script").count()
        seen.page.locator("[data-trials] .trial > summary").nth(1).click()
        said = seen.page.locator("[data-trials] .trial").nth(1).inner_text()

    assert "</script><script>alert(1)</script><img src=x onerror=alert(2)> ⟨ESC⟩[31mred" in said
    assert "⟨U+202E⟩txt.exe" in said
    assert [] == seen.complaints


def test_the_page_itself_refuses_other_scripts_and_requests(visit: Open) -> None:
    """Were something to slip through, the page's own policy would stop it."""
    with visit("fixed-fail") as seen:
        ran = seen.page.evaluate(
            """() => {
                const script = document.createElement("script");
                script.textContent = "window.slipped = true";
                document.body.append(script);
                return window.slipped === true;
            }"""
        )
        asked = seen.page.evaluate(
            "fetch('http://127.0.0.1:9/').then(() => 'answered', () => 'refused')"
        )

    assert (False, "refused") == (ran, asked)
    assert any("Content Security Policy" in complaint for complaint in seen.complaints)
    assert [seen.address] == seen.requests


def test_the_page_works_without_a_script(visit: Open) -> None:
    """Everything is there and unfolds; what needs a script does not show."""
    record = fixed_fail()
    with visit("fixed-fail", java_script_enabled=False) as seen:
        page = seen.page
        assert page.locator("main .decision").is_visible()
        assert not page.locator("[data-filter]").is_visible()
        assert not page.locator("[data-theme-toggle]").is_visible()
        trials = page.locator("[data-trials] .trial")
        assert sum(not trial.passed for trial in record.trials) == trials.count()
        assert trials.nth(0).locator("pre").first.is_visible()
        trials.nth(1).locator("> summary").click()
        assert trials.nth(1).locator("pre").first.is_visible()
        assert page.locator("rect.hit title").count() > 0


def test_trials_are_filtered_by_criterion_and_reason(visit: Open) -> None:
    """The list shrinks to what was asked for, and says how many there are."""
    record = fixed_fail()
    expected = sum(not trial.outcome("valid-json").passed for trial in record.trials)
    late = sum(str(one.outcome("valid-json").result.reason) == "no-value" for one in record.trials)
    with visit("fixed-fail") as seen:
        form = seen.page.locator("[data-filter]")
        shown = seen.page.locator("[data-trials] .trial:visible")
        form.locator("select[name=criterion]").select_option(label="valid-json")
        assert expected == shown.count()
        assert f"{expected} trials shown" == form.locator("output").inner_text()
        form.locator("select[name=reason]").select_option(label="no reply")
        assert late == shown.count()
        form.locator("select[name=criterion]").select_option("")
        form.locator("select[name=reason]").select_option("")
        assert sum(not trial.passed for trial in record.trials) == shown.count()


@pytest.mark.slow
def test_trials_are_searched_by_the_keyboard(visit: Open) -> None:
    """Every word must occur in a trial, in any order; an empty search shows all again."""
    record = fixed_fail()
    failing = [trial for trial in record.trials if not trial.passed]
    with visit("fixed-fail") as seen:
        search = seen.page.get_by_label("Search")
        shown = seen.page.locator("[data-trials] .trial:visible")
        search.focus()
        seen.page.keyboard.type(f"{failing[3].input_id.upper()} trial")
        assert sum(one.input_id == failing[3].input_id for one in failing) == shown.count()
        seen.page.keyboard.press("Control+A")
        seen.page.keyboard.type("no such word at all")
        assert 0 == shown.count()
        assert "0 trials shown" == seen.page.locator("[data-filter] output").inner_text()
        seen.page.keyboard.press("Control+A")
        seen.page.keyboard.press("Delete")
        assert len(failing) == shown.count()


@pytest.mark.slow
def test_charts_say_their_values_to_pointer_and_keyboard(visit: Open) -> None:
    """Pointing at a chart and the arrow keys both read it out."""
    tally = SHAPES["sequential-pass"]().verdict.findings[0].tally
    trials, failures = tally.trials, tally.trials - tally.passed
    with visit("sequential-pass") as seen:
        figure = seen.page.locator("figure", has=seen.page.locator("[data-chart]")).first
        plot, readout = figure.locator("[data-chart]"), figure.locator(".readout")
        assert not readout.is_visible()
        plot.focus()
        seen.page.keyboard.press("End")
        # The run stopped there, so the failures are what the design allows.
        end = f"after {trials} trials: {failures} failures; PASS at {failures} or fewer"
        assert end in readout.inner_text()
        seen.page.keyboard.press("ArrowLeft")
        assert f"after {trials - 1} trials" in readout.inner_text()
        seen.page.keyboard.press("Home")
        assert "after 1 trial:" in readout.inner_text()
        seen.page.keyboard.press("Tab")
        assert not readout.is_visible()
        plot.locator("rect.hit").nth(4).hover()
        assert "after 5 trials" in readout.inner_text()


def test_the_first_key_leads_past_the_heading(visit: Open) -> None:
    """The skip link comes first, shows itself, and leads to the verdict."""
    with visit("fixed-fail") as seen:
        page = seen.page
        page.keyboard.press("Tab")
        focused = page.locator(":focus")
        assert "Skip to the verdict" == focused.inner_text()
        assert focused.bounding_box()["x"] >= 0
        page.keyboard.press("Enter")
        assert "MAIN" == page.evaluate("document.activeElement.tagName")


def ground(page: Any) -> str:
    colour: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return colour


@pytest.mark.slow
def test_the_theme_follows_the_system_until_the_reader_chooses(visit: Open) -> None:
    """Dark and light differ; the button goes from system to light to dark and back."""
    with visit("fixed-fail", color_scheme="light") as seen:
        light = ground(seen.page)
    with visit("fixed-fail", color_scheme="dark") as seen:
        button = seen.page.locator("[data-theme-toggle]")
        dark = ground(seen.page)
        assert light != dark
        button.click()
        assert ("Theme: light", light) == (button.inner_text(), ground(seen.page))
        seen.page.reload()
        assert ("Theme: light", light) == (button.inner_text(), ground(seen.page))
        button.click()
        assert ("Theme: dark", dark) == (button.inner_text(), ground(seen.page))
        button.click()
        assert ("Theme: system", dark) == (button.inner_text(), ground(seen.page))


@pytest.mark.slow
def test_paper_is_white_and_holds_what_failed(visit: Open) -> None:
    """In print there are no controls, no dark ground, and failures are unfolded."""
    with visit("fixed-fail", color_scheme="dark") as seen:
        page = seen.page
        page.emulate_media(media="print")
        assert "rgb(255, 255, 255)" == ground(page)
        for control in ("[data-theme-toggle]", "[data-filter]", "nav"):
            assert not page.locator(control).is_visible()
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.locator("[data-trials] .trial pre").first.is_visible()
        assert page.locator("details.whole .part.deep").first.is_visible()
        assert page.pdf().startswith(b"%PDF")


# --- Comparisons ------------------------------------------------------------------------------


@pytest.mark.slow("390")
@pytest.mark.parametrize("width", [PHONE, DESK])
def test_a_forest_plot_places_intervals_on_one_scale(visit: Open, width: int) -> None:
    """Every row is drawn; what favours the candidate lies to the right of no difference."""
    with visit("comparison", width=width) as seen:
        rows = seen.page.locator(".strips .strip")
        places = [
            [
                row.locator(part).first.bounding_box()["x"]
                for part in ("line.need", "line.other", ".point")
            ]
            for row in rows.all()
        ]
        words = seen.page.locator(".strips").inner_text().replace("\u00a0", " ")

    zero, margin, estimate = places[0]
    assert margin < zero < estimate
    assert {round(zero)} == {round(one[0]) for one in places}
    assert "+10.0 [−6.2, +25.5]" in words
    assert "prompt-a is better" in words


def test_flips_unfold_and_are_narrowed_down(visit: Open) -> None:
    """The first is open with both replies side by side; the others by a click or a choice."""
    lost, won = len(compared_arms.LOST), len(compared_arms.WON)
    with visit("comparison") as seen:
        cards = seen.page.locator("[data-trials] .trial")
        shown = seen.page.locator("[data-trials] .trial:visible")
        assert lost + won == cards.count()
        left, right = (one.bounding_box() for one in cards.first.locator(".compared .quoted").all())
        assert (left["y"], True) == (right["y"], left["x"] < right["x"])
        assert "555" == cards.first.locator(".compared del").first.inner_text()
        assert not cards.nth(1).locator(".compared").is_visible()
        cards.nth(1).locator("> summary").click()
        assert cards.nth(1).locator(".compared").is_visible()
        seen.page.locator("[data-filter] select[name=way]").select_option("won")
        assert won == shown.count()
        assert f"{won} flips shown" == seen.page.locator("[data-filter] output").inner_text()

    assert [] == seen.complaints


def test_hostile_arms_stay_text(visit: Open) -> None:
    """Neither a label nor a reply became an element, ran, or turned the writing round."""
    with visit("hostile-arms") as seen:
        assert 0 == seen.page.locator("img").count()
        assert 1 == seen.page.locator("script").count()
        said = seen.page.locator("[data-trials] .trial").first.inner_text()

    assert "</style><script>alert(1)</script><img src=x onerror=alert(2)>⟨U+202E⟩gnp" in said
    assert [] == seen.complaints
