"""A command: the tables of a database, for whoever writes queries for a suite."""

from __future__ import annotations

import sqlite3

import click


@click.command()
@click.argument("database", type=click.Path(exists=True, dir_okay=False))
def command(database: str) -> int:
    """List the tables of a SQLite database."""
    connection = sqlite3.connect(database)
    try:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
    finally:
        connection.close()
    for (name,) in found:
        click.echo(name)
    # The exit code: 0 where all went well, 2 where the request makes no sense.
    return 0 if found else 2
