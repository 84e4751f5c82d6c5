"""Fuzzes one target with atheris, guided by coverage.

    python -m tests.fuzz.fuzz_target suite --seconds 60 --corpus build/fuzz

ends with exit code 0 where nothing was found. Otherwise it leaves the input in a file beside the
corpus and ends with another code. atheris is not among the dependencies: `pip install atheris`.
"""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from pathlib import Path
from random import Random

from tests.fuzz.json_mutations import mutate_json

#: One input may take this long, in seconds, and this much memory, in MB.
LONGEST_S = 10
MOST_MB = 2048
#: The largest seed, a gold set, has 38 kB; longer inputs make the search slower.
LONGEST_INPUT = 65_536


def main() -> None:
    """Fuzz until the time is up or something is found."""
    parser = argparse.ArgumentParser()
    parser.add_argument("target")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--corpus", type=Path, required=True)
    given = parser.parse_args()

    import atheris  # type: ignore[import-untyped]

    with atheris.instrument_imports(include=["trialwise"]):
        from tests.fuzz.reader_targets import TARGETS

        target = TARGETS[given.target]
        folder = given.corpus / target.name
        folder.mkdir(parents=True, exist_ok=True)
        for number, seed in enumerate(target.seeds()):
            (folder / f"seed-{number}").write_bytes(seed)
            target(seed)  # which imports the rest
    words = given.corpus / f"{target.name}.words"
    words.write_text("".join(f'"{_escape(word)}"\n' for word in target.words))
    # What a library warns of or logs is not read by anybody here.
    warnings.simplefilter("ignore")
    logging.disable()
    options = [
        f"-max_total_time={given.seconds}",
        f"-max_len={LONGEST_INPUT}",
        f"-timeout={LONGEST_S}",
        f"-rss_limit_mb={MOST_MB}",
        *([f"-dict={words}"] if target.words else []),
        f"-artifact_prefix={given.corpus}/{target.name}-",
        "-print_final_stats=1",
        "-verbosity=1",
        str(folder),
    ]

    def mutate(data: bytes, longest: int, seed: int) -> bytes:
        random = Random(seed)
        changed = mutate_json(data, random) if random.random() < 0.5 else None
        return changed if changed and len(changed) <= longest else atheris.Mutate(data, longest)

    atheris.Setup([sys.argv[0], *options], target, custom_mutator=mutate)
    atheris.Fuzz()


def _escape(word: str) -> str:
    """Return a word as dictionaries of libFuzzer spell it."""
    return "".join(
        chr(one) if 32 < one < 127 and one not in b'"\\' else f"\\x{one:02x}"
        for one in word.encode("utf-8", "surrogatepass")
    )


if __name__ == "__main__":
    main()
