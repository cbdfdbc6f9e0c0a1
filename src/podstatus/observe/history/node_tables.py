"""The tables of nodes in the history file: their transitions, and samples of their load.

They have a limit of their own, an eighth of the file: many nodes must not displace the history of
pods. The age of a row is measured by the retention clock of the file. Raises sqlite3.Error.
"""

import sqlite3
from collections.abc import Collection, Iterable, Mapping

import msgspec

from podstatus.observe.transitions.compare_statuses import FINISHED

NODE_TABLES = """
CREATE TABLE IF NOT EXISTS node_moments (
    id INTEGER PRIMARY KEY AUTOINCREMENT, node TEXT NOT NULL, written INTEGER NOT NULL,
    at INTEGER NOT NULL, kind TEXT NOT NULL, subject TEXT NOT NULL, before TEXT NOT NULL,
    after TEXT NOT NULL, reason TEXT NOT NULL, message TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS node_moments_of_node ON node_moments (node, id);
CREATE TABLE IF NOT EXISTS node_loads (
    id INTEGER PRIMARY KEY AUTOINCREMENT, node TEXT NOT NULL, written INTEGER NOT NULL,
    at INTEGER NOT NULL, cpu REAL, memory REAL, disk REAL, inodes REAL, pids REAL, pods REAL
);
CREATE INDEX IF NOT EXISTS node_loads_of_node ON node_loads (node, id);
"""
"""`written`: the retention clock of the file, in nanoseconds."""
_ROW_BYTES = 128
"""Of one row with its entry in the index: measured, 110 for a sample, more for a message."""
_SHARE = 8
_MAX_ENTRIES = 10_000
_MAX_SAMPLES = 5_000
"""Returned for one node: the newest."""
_MAX_NODE_NAME = 253


class NodeLoadSample(msgspec.Struct, frozen=True, kw_only=True):
    """The used fractions of a node at one time; None: unknown."""

    node: str
    at: int
    """Nanoseconds since the Unix epoch."""
    cpu: float | None = None
    memory: float | None = None
    disk: float | None = None
    inodes: float | None = None
    pids: float | None = None
    pods: float | None = None


TransitionTexts = tuple[str, str, str, str, str, str]
"""Kind, subject, before, after, reason and message of a transition."""


def insert_moments(
    database: sqlite3.Connection, rows: Iterable[tuple[str, int, TransitionTexts]], clock: int
) -> None:
    """Insert transitions of nodes with their times; `clock` is the retention clock."""
    database.executemany(
        "INSERT INTO node_moments VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        ((node[:_MAX_NODE_NAME], clock, at, *texts) for node, at, texts in rows),
    )


def insert_loads(
    database: sqlite3.Connection, samples: Iterable[NodeLoadSample], clock: int
) -> None:
    """Insert samples; `clock` is the retention clock."""
    database.executemany(
        "INSERT INTO node_loads VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (it.node, clock, it.at, it.cpu, it.memory, it.disk, it.inodes, it.pids, it.pods)
            for it in samples
        ),
    )


def prune_nodes(
    database: sqlite3.Connection, *, clock: int, max_age: int, max_file_bytes: int
) -> None:
    """Delete rows that are too old, and the oldest above the share of the tables."""
    most = max(1, max_file_bytes // _SHARE // _ROW_BYTES // 2)
    for table in ("node_moments", "node_loads"):
        # `written` increases with the ID.
        kept = database.execute(
            f"SELECT id FROM {table} WHERE written > ? ORDER BY id LIMIT 1",  # noqa: S608
            (clock - max_age,),
        ).fetchone()
        (newest,) = database.execute(f"SELECT max(id) FROM {table}").fetchone()  # noqa: S608
        if newest is not None:
            expired = newest if kept is None else kept[0] - 1
            until = max(expired, newest - most)
            database.execute(f"DELETE FROM {table} WHERE id <= ?", (until,))  # noqa: S608


def select_moments(
    database: sqlite3.Connection, node: str, *, after: int
) -> list[tuple[int, int, TransitionTexts]]:
    """Return the newest transitions of a node after an ID, oldest first: ID, time and texts."""
    rows = database.execute(
        "SELECT id, at, kind, subject, before, after, reason, message FROM node_moments "
        "WHERE node = ? AND id > ? ORDER BY id DESC LIMIT ?",
        (node, after, _MAX_ENTRIES),
    )
    return [(id_, at, tuple(texts)) for id_, at, *texts in rows][::-1]


def select_loads(database: sqlite3.Connection, node: str) -> list[NodeLoadSample]:
    """Return the newest samples of a node, oldest first."""
    rows = database.execute(
        "SELECT at, cpu, memory, disk, inodes, pids, pods FROM node_loads "
        "WHERE node = ? ORDER BY id DESC LIMIT ?",
        (node, _MAX_SAMPLES),
    )
    names = ("at", "cpu", "memory", "disk", "inodes", "pids", "pods")
    return [NodeLoadSample(node=node, **dict(zip(names, row, strict=True))) for row in rows][::-1]


def last_node_values(
    database: sqlite3.Connection, node: str, *, without: Collection[str]
) -> Mapping[tuple[str, str], str]:
    """Return the latest value of each part of a node, without parts of these kinds.

    Empty if it is unknown, or was removed: then it is seen for the first time.
    """
    rows = database.execute(
        "SELECT kind, subject, after FROM node_moments WHERE node = ? ORDER BY id", (node,)
    )
    values: dict[tuple[str, str], str] = {}
    for kind, subject, after in rows:
        if kind == FINISHED:
            values.clear()
        elif kind not in without:
            values[kind, subject] = after
    return values
