"""Where the suite is: in the folder at hand or the nearest above it, as git finds its root."""

from __future__ import annotations

from pathlib import Path

from trialwise.suite.suite_problems import SuiteNotFound

SUITE_NAMES = ("trialwise.yaml", "trialwise.yml")


def find_suite(start: Path) -> Path:
    """Find the suite file that a folder belongs to.

    Args:
        start: Where to begin looking: a folder.

    Raises:
        SuiteNotFound: There is none here or above, or one folder has two.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> (folder / "deep" / "er").mkdir(parents=True)
    >>> _ = (folder / "trialwise.yaml").write_text("service: {}")
    >>> find_suite(folder / "deep" / "er").name
    'trialwise.yaml'
    """
    try:
        here = start.resolve()
        for folder in (here, *here.parents):
            found = [folder / name for name in SUITE_NAMES if (folder / name).is_file()]
            if len(found) > 1:
                names = " and ".join(path.name for path in found)
                raise SuiteNotFound((), f"{folder} has both {names}: remove one")
            if found:
                return found[0]
    except (OSError, ValueError, RuntimeError) as error:
        raise SuiteNotFound((), f"no suite can be looked for from {start}: {error}") from None
    raise SuiteNotFound(
        (),
        f"no {SUITE_NAMES[0]} in {here} or in a folder above it. "
        "Write one with `trialwise init`, or name a suite file.",
    )
