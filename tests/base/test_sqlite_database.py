"""Opening of database files: private, of one format, without a write to an existing one."""

import os
import sqlite3
from pathlib import Path

import pytest

from podstatus.base.sqlite_database import (
    DatabaseFormat,
    DatabaseFormatError,
    is_corruption,
    open_database,
    remove_database,
)

FORMAT = DatabaseFormat(version=2, tables="CREATE TABLE IF NOT EXISTS words (word TEXT)")


def test_what_was_written_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    for word in ("one", "two"):
        database = open_database(path, FORMAT)
        database.execute("INSERT INTO words VALUES (?)", (word,))
        database.close()
    database = open_database(path, FORMAT)
    assert database.execute("SELECT word FROM words").fetchall() == [("one",), ("two",)]
    assert database.execute("PRAGMA user_version").fetchone() == (2,)
    database.close()


def test_only_the_owner_may_read_the_file_and_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    path.touch(mode=0o644)
    database = open_database(path, FORMAT)
    assert {it.name: it.stat().st_mode & 0o777 for it in tmp_path.iterdir()} == dict.fromkeys(
        ("words.db", "words.db-wal", "words.db-shm"), 0o600
    )
    database.close()


def test_a_file_of_another_format_is_refused_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    open_database(path, FORMAT).close()
    content = path.read_bytes()
    with pytest.raises(DatabaseFormatError) as refused:
        open_database(path, DatabaseFormat(version=1, tables=FORMAT.tables))
    assert refused.value.version == 2
    assert path.read_bytes() == content


def test_a_file_without_tables_stays_of_no_format(tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    open_database(path, DatabaseFormat(version=7)).close()
    open_database(path, FORMAT).close()


def test_free_pages_of_a_new_file_can_be_released(tmp_path: Path) -> None:
    format = DatabaseFormat(version=1, tables=FORMAT.tables, incremental_vacuum=True)
    database = open_database(tmp_path / "words.db", format)
    incremental = 2
    assert database.execute("PRAGMA auto_vacuum").fetchone() == (incremental,)
    database.close()


def test_a_pipe_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "words.db")
    with pytest.raises(OSError, match="not a regular file"):
        open_database(tmp_path / "words.db", FORMAT)


def test_damage_is_told_from_a_full_disk(tmp_path: Path) -> None:
    path = tmp_path / "words.db"
    path.write_bytes(b"no database" * 1000)
    with pytest.raises(sqlite3.DatabaseError) as damaged:
        open_database(path, FORMAT)
    assert is_corruption(damaged.value)
    assert not is_corruption(sqlite3.OperationalError("database or disk is full"))


def test_a_removed_database_leaves_nothing_behind(tmp_path: Path) -> None:
    database = open_database(tmp_path / "words.db", FORMAT)
    remove_database(tmp_path / "words.db")
    assert list(tmp_path.iterdir()) == []
    database.close()
