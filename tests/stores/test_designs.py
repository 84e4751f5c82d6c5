"""Designs kept on disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trialwise.stats.sequential import SequentialDesign
from trialwise.stores.baselines import FileDesignCache, find_design_folder

#: A claim that does not ship with the package.
CLAIM = (0.83, 0.71)


def test_a_design_is_searched_for_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second time it is read, and equal."""
    from trialwise.stats.sequential import shipped_designs

    cache = FileDesignCache(tmp_path)
    first = SequentialDesign.optimal(*CLAIM, cap=40, cache=cache)
    monkeypatch.setattr(shipped_designs, "search_design", lambda *_: pytest.fail("searched again"))

    assert first == SequentialDesign.optimal(*CLAIM, cap=40, cache=cache)


@pytest.mark.parametrize("text", ["", "{", "[]", "3", "\x00"])
def test_a_damaged_file_counts_as_absent(tmp_path: Path, text: str) -> None:
    """A half-written or foreign file never breaks a run."""
    cache = FileDesignCache(tmp_path)
    cache.save("key", {"a": 1})
    (tmp_path / "key.json").write_text(text, encoding="utf-8")

    assert cache.load("key") is None


@pytest.mark.slow
def test_a_tampered_design_is_not_believed(tmp_path: Path) -> None:
    """A kept design whose errors exceed its claim is searched for again."""
    cache = FileDesignCache(tmp_path)
    honest = SequentialDesign.optimal(*CLAIM, cap=40, cache=cache)
    (file,) = tmp_path.glob("*.json")
    key = file.name.removesuffix(".json")
    values = dict(cache.load(key) or {})
    values["accept"] = [-1, *range(40)]  # passes almost everything
    cache.save(key, values)

    assert honest == SequentialDesign.optimal(*CLAIM, cap=40, cache=cache)


def test_no_key_leaves_the_folder(tmp_path: Path) -> None:
    """A key with path separators is a file name like any other."""
    cache = FileDesignCache(tmp_path / "inner")
    cache.save("../../evil", {"a": 1})

    assert {"a": 1} == cache.load("../../evil")
    assert [] == [file for file in tmp_path.rglob("*.json") if file.parent != tmp_path / "inner"]


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    """Without a cache the design is only searched for again."""
    blocked = tmp_path / "file"
    blocked.write_text("not a folder", encoding="utf-8")
    cache = FileDesignCache(blocked)
    cache.save("key", {"a": 1})

    assert cache.load("key") is None


def test_no_part_file_is_left(tmp_path: Path) -> None:
    """Writing leaves one file behind."""
    FileDesignCache(tmp_path).save("key", {"a": 1})

    assert ["key.json"] == os.listdir(tmp_path)


def test_the_default_folder_follows_the_environment(tmp_path: Path) -> None:
    """Our own variable wins over the desktop's."""
    for variable, part in (("TRIALWISE_CACHE", "designs"), ("XDG_CACHE_HOME", "trialwise/designs")):
        cache = FileDesignCache(find_design_folder({variable: str(tmp_path / variable)}))
        cache.save("key", {"a": 1})

        assert (tmp_path / variable / part / "key.json").is_file()
