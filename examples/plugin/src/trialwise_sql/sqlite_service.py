"""A service: a SQLite database that is asked each input."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Annotated, ClassVar

from trialwise.extend import Arg, File, Positive, Reply, TrialContext


class SqliteService:
    """A SQLite database that runs each input as a query.

    Args:
        database: The file of the database.
        rows: The most rows of a reply.
    """

    spelling: ClassVar[str] = "sqlite"

    def __init__(
        self, database: Annotated[str | Path, Arg(kind=File())], *, rows: Positive = 100
    ) -> None:
        self._database = database
        self._rows = rows

    async def call(self, trial: TrialContext) -> Reply:
        """Run the query of one trial."""
        connection = sqlite3.connect(self._database)
        try:
            found = connection.execute(str(trial.input)).fetchmany(self._rows)
        finally:
            connection.close()
        return Reply(value=[list(row) for row in found])

    async def aclose(self) -> None:
        """Nothing is open between calls."""
