"""A check: the reply is SQL that a database accepts."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass

from trialwise.extend import Check, CheckResult, Reply, failed, preview, text_of


@dataclass(frozen=True, slots=True)
class RunsAsSql(Check, spelling="runs_as_sql"):
    """The reply is SQL that runs in an empty SQLite database.

    Args:
        setup: Statements that run before it, such as those that create its tables.
    """

    setup: str = ""

    @property
    def name(self) -> str:
        """How reports call it."""
        return "runs as SQL"

    def _examine(self, reply: Reply) -> CheckResult:
        text = text_of(reply)
        database = sqlite3.connect(":memory:")
        try:
            database.executescript(self.setup)
            database.execute(text)
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            return failed(f"the reply is not SQL that runs: {error}", preview(text))
        finally:
            database.close()
        return CheckResult.ok()
