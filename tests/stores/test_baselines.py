"""Baselines on disk: exact, readable, inside their folder, and never quietly wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trialwise.errors import BaselineError, InvalidArgument
from trialwise.model.baseline import Baseline, CriterionBaseline
from trialwise.model.claim import Claim, Estimator, PopulationClaim, TargetEstimand
from trialwise.stores._files import safe_name
from trialwise.stores.baselines import BaselineStore

CREATED = datetime(2026, 5, 15, 9, 0, tzinfo=UTC)


def baseline(identifier: str = "advice-1", days: float = 0.0, **given: Any) -> Baseline:
    one = CriterionBaseline(
        trials=1000,
        passed=953,
        condition=40,
        transform=7,
        structure="5f3a5f3a5f3a5f3a",
        postconditions=('{"parses":"json"}',),
        sampling="questions 1",
        sampling_fingerprint="77aa77aa77aa77aa",
    )
    defaults: dict[str, Any] = {
        "identifier": identifier,
        "contract": "advice",
        "created_at": CREATED + timedelta(days=days),
        "criteria": {"well-formed": one},
        "covariates": {"region": "EU", "day of week": "WEEKDAY"},
        "factors": {"model": "m-1", "temperature": "0.0"},
        "latencies_s": {"questions": [k / 1000 for k in range(25)]},
        "run_trials": {"questions": 1000},
        "valid_days": 90,
    }
    return Baseline(**defaults | given)


@pytest.fixture
def store(tmp_path: Path) -> BaselineStore:
    return BaselineStore(tmp_path / "baselines")


# Round trip -----------------------------------------------------------------------------------

texts = st.text(max_size=8)
names = st.text(min_size=1, max_size=8).filter(str.strip)


@st.composite
def counts(draw: st.DrawFn) -> CriterionBaseline:
    passed, failed = draw(st.integers(0, 10**9)), draw(st.integers(0, 10**9))
    transform = draw(st.integers(0, failed))
    given = draw(st.booleans())
    return CriterionBaseline(
        trials=max(passed + failed, 1),
        passed=passed,
        condition=failed - transform if given and passed + failed else 0,
        transform=transform if given and passed + failed else 0,
        structure=draw(names),
        postconditions=tuple(draw(st.lists(texts, max_size=2))),
        sampling=draw(texts),
        sampling_fingerprint=draw(texts),
    )


claims = st.builds(
    Claim,
    population=st.sampled_from(PopulationClaim),
    population_name=names,
    representativeness=texts,
    estimand=st.sampled_from(TargetEstimand),
    estimator=st.none() | st.sampled_from(Estimator),
)
moments = st.datetimes(
    min_value=datetime(1971, 1, 1),
    max_value=datetime(2900, 1, 1),
    timezones=st.timezones() | st.just(UTC),
)
days = st.floats(min_value=1e-3, max_value=36_525)
baselines = st.builds(
    Baseline,
    identifier=names,
    contract=names,
    created_at=moments,
    criteria=st.dictionaries(texts, counts(), min_size=1, max_size=3),
    covariates=st.dictionaries(texts, texts, max_size=3),
    factors=st.dictionaries(texts, texts, max_size=3),
    claim=claims,
    latencies_s=st.dictionaries(
        texts, st.lists(st.floats(min_value=0, max_value=1e12), max_size=25), max_size=2
    ),
    run_trials=st.dictionaries(texts, st.integers(25, 10**9), max_size=2),
    valid_days=st.none() | days,
    grace_days=st.just(0.0) | days,
    epoch=st.integers(1, 10**6),
    run_id=texts,
    tool_version=texts,
)


@given(baselines)
def test_what_is_saved_is_loaded_exactly(one: Baseline) -> None:
    """Every count, latency, date and text, half surrogates and all zones included."""
    with tempfile.TemporaryDirectory() as folder:
        store = BaselineStore(Path(folder))
        path = store.save(one)

        assert one == store.load(path)
        assert [(path, one)] == store.all(one.contract) == store.all()
        assert Path(folder) == path.parent.parent
        assert [path.name] == os.listdir(path.parent)
        assert list(one.criteria) == list(store.load(path).criteria)


WRITTEN = """{
  "format": "trialwise.baseline/1",
  "contract": "advice",
  "identifier": "advice-1",
  "created_at": "2026-05-15T09:00:00+00:00",
  "epoch": 1,
  "valid_days": 90.0,
  "grace_days": 0.0,
  "expires_at": "2026-08-13T09:00:00+00:00",
  "covariates": {
    "day of week": "WEEKDAY",
    "region": "EU"
  },
  "factors": {
    "model": "m-1",
    "temperature": "0.0"
  },
  "claim": {
    "population": "fixed-inputs",
    "population_name": "",
    "representativeness": "",
    "estimand": "call-weighted",
    "estimator": null
  },
  "criteria": {
    "well-formed": {
      "trials": 1000,
      "passed": 953,
      "rate": 0.953,
      "condition": 40,
      "transform": 7,
      "no_value": 0,
      "structure": "5f3a5f3a5f3a5f3a",
      "postconditions": [
        "{\\"parses\\":\\"json\\"}"
      ],
      "sampling": "questions 1",
      "sampling_fingerprint": "77aa77aa77aa77aa"
    }
  },
  "run_trials": {
    "questions": 1000
  },
  "latencies_s": {
    "questions": [
      0.0, 0.001, 0.002, 0.003, 0.004, 0.005, 0.006, 0.007, 0.008, 0.009,
      0.01, 0.011, 0.012, 0.013, 0.014, 0.015, 0.016, 0.017, 0.018, 0.019,
      0.02, 0.021, 0.022, 0.023, 0.024
    ]
  },
  "run_id": "",
  "tool_version": "",
  "checksum": "sha256:CHECKSUM"
}
"""


def signed(text: str) -> str:
    """A document with the checksum that its values have, by the rule the format states."""
    document = json.loads(text)
    document.pop("checksum")
    plain = json.dumps(document, sort_keys=True, separators=(",", ":"))
    return text.replace("CHECKSUM", sha256(plain.encode()).hexdigest())


def test_the_first_format_is_read_and_written_for_ever(store: BaselineStore) -> None:
    """A field more or less is another format: baselines in a repository outlive this version."""
    path = store.save(baseline())

    assert signed(WRITTEN) == path.read_text(encoding="utf-8")


def test_line_ends_and_formatting_do_not_count(store: BaselineStore) -> None:
    """git may turn them on the way."""
    path = store.save(baseline())
    text = path.read_text(encoding="utf-8")
    for other in (text.replace("\n", "\r\n"), json.dumps(json.loads(text), indent=7)):
        path.write_bytes(other.encode())
        assert baseline() == store.load(path)


def test_people_can_read_other_scripts(store: BaselineStore) -> None:
    """A text is written as it is, not as escapes."""
    path = store.save(baseline(covariates={"région": "Zürich 東京"}))

    assert '"région": "Zürich 東京"' in path.read_text(encoding="utf-8")


# Damage ---------------------------------------------------------------------------------------


def refused(store: BaselineStore, path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    with pytest.raises(BaselineError) as caught:
        store.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "measure a new" in message
    return message


def test_a_file_cut_anywhere_is_an_error(store: BaselineStore, tmp_path: Path) -> None:
    """At every byte but the last line end."""
    data = store.save(baseline()).read_bytes()
    path = tmp_path / "cut.json"
    for cut in range(len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(BaselineError, match=r"not a whole JSON document|not a baseline"):
            store.load(path)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"passed": 953', '"passed": 954'),
        ('"rate": 0.953', '"rate": 0.954'),
        ('"region": "EU"', '"region": "US"'),
        ('"m-1"', '"m-2"'),
        ("2026-05-15", "2027-05-15"),
        ("0.024\n", "0.025\n"),
        ('"valid_days": 90.0', '"valid_days": null'),
        ('"checksum": "sha256:', '"checksum": "sha256:0'),
        ('  "checksum"', '  "sum"'),
    ],
)
def test_a_changed_value_is_an_error(store: BaselineStore, old: str, new: str) -> None:
    """Whoever wants a better baseline has to measure one."""
    path = store.save(baseline())
    text = path.read_text(encoding="utf-8")
    assert old in text

    assert "the checksum does not fit" in refused(store, path, text.replace(old, new))


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ('"rate": 0.953', '"rate": 0.954', "'rate' is 0.954, which does not fit the rest"),
        ("2026-08-13", "2026-08-14", "'expires_at' is"),
        ('"passed": 953', '"passed": 1001', "passed must lie between 0 and 1000"),
        ('"passed": 953', '"passed": 953, "skipped": 1', "skipped must not be there"),
        ('"epoch": 1', '"epoch": 1, "era": 1', "era must not be there"),
        ('"epoch": 1,', "", "'epoch' is missing"),
        ('"transform": 7,', "", "add up to the 47"),
        ('"estimator": null', '"estimator": null, "mood": 1', "mood must not be there"),
        ('"call-weighted"', '"heavy"', "estimand must be one of"),
        ('"2026-05-15T09', '"2026-05-15 at 9', "created_at must be a date and time"),
        ("09:00:00+00:00", "09:00:00", "time zone"),
        ('"epoch": 1', '"epoch": true', "epoch must be a whole number"),
        ('"region": "EU"', '"region": 1', "['region'] must be a text"),
        ('"epoch": 1', '"epoch": 1, "epoch": 1', "a key is repeated"),
        ("0.024\n", "NaN\n", "JSON compliant"),
        ("0.024\n", "0.0000001\n", "does not fit the rest"),
    ],
)
def test_a_document_that_is_no_baseline_is_an_error_even_when_signed(
    store: BaselineStore, tmp_path: Path, old: str, new: str, problem: str
) -> None:
    """The message says which file, what is wrong with it and what to do."""
    assert old in WRITTEN
    text = WRITTEN.replace(old, new)

    assert problem in refused(store, tmp_path / "advice" / "advice-1.json", signed(text))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not a whole JSON document"),
        ("[]", "not a baseline"),
        ("{}", "not a baseline"),
        ("null", "not a baseline"),
        ('{"format": "trialwise.baseline/2"}', "'trialwise.baseline/2', and this version"),
        ('{"format": {}}', "its format is {}"),
        ('{"format": "trialwise.baseline/1"}', "the checksum does not fit"),
        ("[" * 100_000, "not a whole JSON document"),
        (WRITTEN.replace("CHECKSUM", ""), "the checksum does not fit"),
    ],
)
def test_another_file_is_an_error(
    store: BaselineStore, tmp_path: Path, text: str, problem: str
) -> None:
    """Never passed over: a baseline that cannot be read is not one that is not there."""
    path = tmp_path / "baselines" / "advice" / "x.json"

    assert problem in refused(store, path, text)
    with pytest.raises(BaselineError, match=r"x\.json"):
        store.all("advice")
    with pytest.raises(BaselineError, match=r"x\.json"):
        store.all()


def test_bytes_that_are_no_text_are_an_error(store: BaselineStore, tmp_path: Path) -> None:
    """And so is a file that is not there, or is a folder."""
    (tmp_path / "x.json").write_bytes(b"\xff\xfe")
    for name in ("x.json", "gone.json", "."):
        with pytest.raises(BaselineError, match=r"not a whole JSON document|cannot be read"):
            store.load(tmp_path / name)


def test_a_file_in_the_wrong_place_is_an_error(store: BaselineStore) -> None:
    """A copy must count neither twice nor for another contract."""
    path = store.save(baseline())
    copy = path.with_name("copy.json")
    copy.write_bytes(path.read_bytes())
    with pytest.raises(BaselineError, match=r"copy\.json: this is the baseline 'advice-1'"):
        store.all("advice")
    copy.unlink()
    renamed = path.parent.with_name("renamed")
    path.parent.rename(renamed)
    with pytest.raises(BaselineError, match=r"of the contract 'advice'\. Move it to"):
        store.all("renamed")


# Saving ---------------------------------------------------------------------------------------


def test_saving_twice_changes_nothing_and_another_is_refused(store: BaselineStore) -> None:
    """A verdict may have been decided against what is there."""
    path = store.save(baseline())
    before = path.stat()

    assert path == store.save(baseline())
    assert before.st_mtime_ns == path.stat().st_mtime_ns
    with pytest.raises(BaselineError, match="never overwritten"):
        store.save(replace(baseline(), epoch=2))
    assert baseline() == store.load(path)


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder nobody can write to")
def test_a_folder_that_cannot_be_written_to_is_an_error_with_its_path() -> None:
    """For everybody, the administrator included."""
    with pytest.raises(BaselineError, match=r"/proc/baselines/advice/advice-1\.json: .*written"):
        BaselineStore(Path("/proc/baselines")).save(baseline())


def test_a_file_where_the_folder_should_be_is_an_error(tmp_path: Path) -> None:
    """Neither saved over nor taken for an empty folder."""
    (tmp_path / "b").write_text("x")
    store = BaselineStore(tmp_path / "b")
    actions: list[Callable[[], object]] = [
        lambda: store.save(baseline()),
        store.all,
        lambda: store.all("advice"),
    ]
    for action in actions:
        with pytest.raises(BaselineError, match=str(tmp_path / "b")):
            action()


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    """Half a file is never seen, and what was there stays."""
    script = """
import resource, signal, sys
from pathlib import Path
from datetime import UTC, datetime
from trialwise.errors import BaselineError
from trialwise.model.baseline import Baseline, CriterionBaseline
from trialwise.stores.baselines import BaselineStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
one = CriterionBaseline(trials=10, passed=9, structure="5f3a")
many = {"inputs": [k / 7 for k in range(1000)]}
when = datetime(2026, 1, 1, tzinfo=UTC)
large = Baseline(
    identifier="a", contract="c", created_at=when, criteria={"x": one}, latencies_s=many
)
try:
    BaselineStore(Path(sys.argv[1])).save(large)
except BaselineError as error:
    print(error)
"""
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True
    )

    assert "cannot be written: File too large" in run.stdout
    assert [] == list((tmp_path / "c").iterdir())


def test_a_file_has_the_permissions_of_any_other(store: BaselineStore, tmp_path: Path) -> None:
    """It is kept in git and read by colleagues."""
    (tmp_path / "plain").touch()

    assert (tmp_path / "plain").stat().st_mode == store.save(baseline()).stat().st_mode


# The folder -----------------------------------------------------------------------------------


def test_an_empty_or_missing_folder_holds_nothing(store: BaselineStore, tmp_path: Path) -> None:
    """Nothing is created by looking."""
    assert [] == store.all() == store.all("advice")
    assert [] == os.listdir(tmp_path)


def test_other_files_are_left_alone(store: BaselineStore, tmp_path: Path) -> None:
    """A page about the baselines, and what a killed process left half written."""
    path = store.save(baseline())
    (tmp_path / "baselines" / "README.md").write_text("why")
    (path.parent / "notes.txt").write_text("why")
    (path.parent / ".advice-2.json.17.part").write_text("{")
    (path.parent / "._advice-1.json").write_text("x")

    assert [(path, baseline())] == store.all()


def test_baselines_come_oldest_first_and_by_contract(store: BaselineStore) -> None:
    """Whatever their names."""
    some = [baseline("b", 1), baseline("a", 2), baseline("c", 0), baseline("d", 3, contract="x")]
    for one in some:
        store.save(one)

    assert ["c", "b", "a"] == [one.identifier for _, one in store.all("advice")]
    assert ["c", "b", "a", "d"] == [one.identifier for _, one in store.all()]


def test_a_new_measurement_of_an_index_starts_the_next_epoch(store: BaselineStore) -> None:
    """Each index counts its own (§8.5)."""
    eu, us = {"region": "EU"}, {"region": "US"}
    assert 1 == store.next_epoch("advice", eu)
    store.save(baseline("a", covariates=eu))
    store.save(baseline("b", 1, covariates=eu, epoch=2))

    assert (3, 1, 1, 1) == (
        store.next_epoch("advice", eu),
        store.next_epoch("advice", us),
        store.next_epoch("advice", {}),
        store.next_epoch("search", eu),
    )


def test_a_baseline_from_elsewhere_becomes_the_newest_of_its_index(
    store: BaselineStore, tmp_path: Path
) -> None:
    """With the next epoch, once."""
    store.save(baseline("a"))
    artefact = BaselineStore(tmp_path / "artefacts").save(baseline("b", 1))
    path = store.promote(artefact)

    assert replace(baseline("b", 1), epoch=2) == store.load(path)
    assert path == store.promote(artefact)
    assert 2 == len(store.all())


def test_pruning_keeps_the_newest_of_each_index(store: BaselineStore) -> None:
    """And says what it deleted."""
    us = {"region": "US"}
    some = [baseline(f"eu-{k}", k) for k in range(4)] + [
        baseline(f"us-{k}", k, covariates=us) for k in range(2)
    ]
    for one in some:
        store.save(one)
    deleted = store.prune(2)

    assert ["eu-0.json", "eu-1.json"] == [path.name for path in deleted]
    assert ["eu-2", "eu-3", "us-0", "us-1"] == sorted(one.identifier for _, one in store.all())
    assert [] == store.prune(2, contract="advice")
    with pytest.raises(InvalidArgument, match="keep"):
        store.prune(0)


# Names ----------------------------------------------------------------------------------------

ODD = [
    "../../evil",
    "/etc/passwd",
    "a/b",
    "a\\b",
    "C:\\x",
    "..",
    ".",
    "...",
    ".hidden",
    "CON",
    "con.txt",
    "nul",
    "Lpt1",
    "-rf",
    "~root",
    "a b",
    "a\nb",
    "a\0b",
    "trailing.",
    "x" * 300,
    "x" * 299 + "y",
    "agent",
    "аgent",  # the first letter is Cyrillic
    "café",
    "cafe\u0301",
    "a-b",
    "a-b~c14cddc033",
    "\ud800",
    "💥",
    "%2e%2e%2f",
]


@pytest.mark.parametrize("name", ODD)
def test_no_name_leaves_the_folder(store: BaselineStore, tmp_path: Path, name: str) -> None:
    """As a contract and as an identifier; and it is found again."""
    one = baseline(name, contract=name)
    path = store.save(one)

    assert tmp_path / "baselines" == path.resolve().parent.parent
    assert [(path, one)] == store.all(name) == store.all()
    assert len(path.name.encode()) < 128
    assert path.name.isascii()
    assert not path.name.startswith((".", "-", "~"))


def test_no_two_names_share_a_file(store: BaselineStore) -> None:
    """All of them at once, as contracts and as identifiers of one."""
    for name in ODD:
        store.save(baseline(name, contract=name))
        store.save(baseline(name))

    assert 2 * len(ODD) == len(store.all())
    assert sorted(ODD) == sorted(one.identifier for _, one in store.all("advice"))
    for name in ODD:
        assert [name] == [one.contract for _, one in store.all(name)]


@given(st.text(max_size=100), st.text(max_size=100))
def test_safe_names_differ_where_names_do(one: str, two: str) -> None:
    """Every text has one, and it says where it was kept as it is."""
    assert (one == two) == (safe_name(one) == safe_name(two))
    assert ("~" in safe_name(one)) == (safe_name(one) != one)
    assert set(safe_name(one)) <= set(
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-~"
    )


@pytest.mark.parametrize(
    "name", ["agent", "support-agent", "Agent_2.1", "sums@2026-01-10T14-45-00"]
)
def test_plain_names_stay_what_they_are(name: str) -> None:
    """A person looks for them."""
    assert name == safe_name(name)


def test_a_folder_that_could_not_keep_a_baseline_is_said_beforehand(tmp_path: Path) -> None:
    """A file in the folder's place, before a trial is paid for."""
    (tmp_path / "baselines").write_text("in the way")
    with pytest.raises(BaselineError, match="baselines"):
        BaselineStore(tmp_path / "baselines").check_writable("c")
    BaselineStore(tmp_path / "others").check_writable("c")
    assert [] == BaselineStore(tmp_path / "others").all("c")


def test_measurements_of_one_second_have_names_of_their_own(tmp_path: Path) -> None:
    """Two that end in the same second are both kept."""
    import trialwise as tw
    from trialwise.checks.criterion_scopes import scopes_of
    from trialwise.runtime.looping import run_to_end
    from trialwise.runtime.measuring import write_baseline
    from trialwise.runtime.preparing import prepare_run
    from trialwise.runtime.workspace import Workspace

    asked = tw.Contract("x", str.lower, [tw.Criterion("ok", tw.equals("ok"), at_least=0.5)])
    asked = asked.with_inputs(["ok"])
    space = Workspace(store=None, baselines=tmp_path)
    names = []
    for _ in range(3):
        options = tw.RunOptions(trials=30)
        prepared = prepare_run(asked, options, space, measuring=True)
        with space.open_run(prepared) as run:
            measured = write_baseline(
                prepared.plan,
                run_to_end(run.go).trials,
                scopes=scopes_of(asked),
                baselines=tmp_path,
                created_at=datetime(2026, 11, 16, 1, 2, 3, tzinfo=UTC),
            )
        names.append(measured.baseline.identifier)

    stem = "x@2026-11-16T01-02-03"
    assert names == [stem, f"{stem}-2", f"{stem}-3"]
