"""SQLite file with every transition of every pod and its time, for a retention period.

It also has the transitions and the load of nodes, in tables of their own (`node_tables`).

    history = History.open(folder / "history.db")
    history.append([HistoryEntry(...), ...])
    history.timeline("default", "web-0")

One thread writes; concurrent readers open the
file with `open_history_reader`. Design and cost: docs/decisions/0029-the-history.md.

`recover` detects that another program deleted or damaged the file while it is in use: the damaged
file is set aside, and a new one begins.

    HistoryError     the file cannot be used; the message says why and what to do
"""

import math
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from podstatus.base.sqlite_database import (
    DatabaseFormat,
    DatabaseFormatError,
    is_corruption,
    open_database,
    remove_database,
)
from podstatus.base.sqlite_file_monitor import SqliteFileMonitor
from podstatus.kube.objects.meta import ObjectReference
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.history import node_tables
from podstatus.observe.history.node_tables import NODE_TABLES, NodeLoadSample, TransitionTexts
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.summary.pod import sanitize_text
from podstatus.observe.transitions.compare_statuses import (
    AGENT,
    AGENT_DOWNTIME,
    CONTAINER,
    EVENT,
    FINISHED,
    FIRST_SEEN,
    FOREIGN_WRITE,
    SYNC,
    Transition,
    has_duration,
)
from podstatus.observe.transitions.resume import TransitionKey, TransitionValue

_TABLES = """
CREATE TABLE IF NOT EXISTS pods (
    id INTEGER PRIMARY KEY, uid TEXT NOT NULL UNIQUE, namespace TEXT NOT NULL, name TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS pods_by_name ON pods (namespace, name);
CREATE TABLE IF NOT EXISTS moments (
    id INTEGER PRIMARY KEY AUTOINCREMENT, pod INTEGER NOT NULL, at INTEGER NOT NULL,
    kind TEXT NOT NULL, subject TEXT NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL,
    reason TEXT NOT NULL, message TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS moments_of_pod ON moments (pod, id);
CREATE TABLE IF NOT EXISTS retention_clock (
    one INTEGER PRIMARY KEY CHECK (one = 1), nanos INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS retention_marks (nanos INTEGER PRIMARY KEY, newest INTEGER NOT NULL);
"""
_FORMAT = DatabaseFormat(
    # A file of an earlier version gets the tables of nodes when it is opened; it still opens there.
    version=1,
    tables=_TABLES + NODE_TABLES,
    journal_bytes=8 * 2**20,
    incremental_vacuum=True,
)
_SET_CLOCK = """
INSERT INTO retention_clock VALUES (1, ?) ON CONFLICT DO UPDATE SET nanos = excluded.nanos
"""
_MAX_RETENTION_MARKS = 1_000
"""Resolution of the retention period: the number of marks it is divided into."""
_INSERT_ENTRY = "INSERT INTO moments VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT_ENTRIES = """
SELECT moments.id, at, uid, namespace, name, kind, subject, before, after, reason, message
FROM moments JOIN pods ON pods.id = moments.pod
"""
_DURATION = re.compile(r"(\d{1,10}(?:\.\d{1,9})?) s")
"""A duration as `after` of its row."""
_NON_STATE_KINDS = (EVENT, SYNC, FOREIGN_WRITE, AGENT_DOWNTIME)
"""Kinds that are not part of a pod's state, and may follow its end."""
NODE_NON_STATE_KINDS = (FIRST_SEEN, EVENT, AGENT_DOWNTIME, AGENT)
"""Kinds of entries about a node that are not part of its state."""
_SELECT_UNFINISHED = """
SELECT uid, namespace, name
FROM pods JOIN moments ON moments.id = (
    SELECT id FROM moments
    WHERE pod = pods.id AND kind NOT IN (?, ?, ?, ?)
    ORDER BY id DESC LIMIT 1
)
WHERE kind <> ? AND moments.id > ?
"""
"""Parameters: the kinds above, FINISHED, and an ID."""
_MAX_TEXT_LENGTH = 1024
"""Characters of a message that are stored."""
_BUSY_SECONDS = 5.0
_MAX_TIMELINE_ENTRIES = 10_000
"""Entries returned for the pods of one name: the newest."""
_DELETE_BATCH_SIZE = 20_000
"""Entries deleted in one transaction, so that the journal stays small."""
_PRUNE_TARGET_FRACTION = 0.9
"""Fraction of the maximum size that is left after pruning, so that it does not recur at once."""
_MAX_FREE_FRACTION = 0.25
"""Fraction of the file that may be free before it is shrunk; below it the pages are reused."""


class HistoryError(Exception):
    """The history cannot be used."""


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A transition of a pod, and when it was seen; or of a node, without UID and namespace."""

    at: int
    """Nanoseconds since the Unix epoch."""
    uid: PodUID
    namespace: str
    name: str
    transition: Transition
    id: int = 0
    """Increases with every entry; 0 before it is written."""


def node_entry(node: str, at: int, transition: Transition, *, id: int = 0) -> HistoryEntry:
    """Return an entry about a node."""
    return HistoryEntry(
        id=id, at=at, uid=PodUID(""), namespace="", name=node, transition=transition
    )


class NodeRecords(msgspec.Struct, frozen=True):
    """What is known about nodes, oldest first."""

    entries: Sequence[HistoryEntry] = ()
    samples: Sequence[NodeLoadSample] = ()


NO_RECORDS = NodeRecords()


class HistoryReader:
    """Queries on the file, for one thread at a time. All methods raise HistoryError."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self._path = path

    def close(self) -> None:
        self._database.close()

    def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        """Return the entries of all pods of this name after an ID, oldest first.

        At most 10,000 entries, the newest.
        """
        where = (
            "WHERE namespace = ? AND name = ? AND moments.id > ? ORDER BY moments.id DESC LIMIT ?"
        )
        return self._read(where, (namespace, name, after, _MAX_TIMELINE_ENTRIES))[::-1]

    def entries_after(self, after: int, *, limit: int) -> list[HistoryEntry]:
        """Return the entries after an ID, oldest first."""
        return self._read("WHERE moments.id > ? ORDER BY moments.id LIMIT ?", (after, limit))

    def node_timeline(self, node: str, *, after: int = 0) -> NodeRecords:
        """Return the entries of a node after an ID, and its load, oldest first.

        At most 10,000 entries and 5,000 samples, the newest.
        """
        with self._translate_errors("read"):
            moments = node_tables.select_moments(self._database, node, after=after)
            samples = node_tables.select_loads(self._database, node)
        entries = [
            node_entry(node, at, _decode_transition(*texts), id=id_) for id_, at, texts in moments
        ]
        return NodeRecords(entries, samples)

    def count(self) -> int:
        with self._translate_errors("read"):
            (count,) = self._database.execute("SELECT count(*) FROM moments").fetchone()
        return int(count)

    def _read(self, where: str, values: Iterable[str | int]) -> list[HistoryEntry]:
        with self._translate_errors("read"):
            rows = self._database.execute(_SELECT_ENTRIES + where, tuple(values)).fetchall()
        return [_decode_entry(row) for row in rows]

    @contextmanager
    def _translate_errors(self, what: str) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self._on_error(error)
            raise HistoryError(f"cannot {what} {self._path}: {error}") from error

    def _on_error(self, error: sqlite3.Error) -> None:
        """Hook for subclasses: called with every failure."""


@contextmanager
def open_history_reader(path: Path) -> Iterator[HistoryReader]:
    """Open the file read-only, while another thread or process may write it.

    Raises HistoryError.
    """
    try:
        address = f"file:{quote(str(path.absolute()))}?mode=ro"
        database = sqlite3.connect(address, uri=True, timeout=_BUSY_SECONDS)
    except sqlite3.Error as error:
        raise HistoryError(f"cannot read {path}: {error}") from error
    try:
        yield HistoryReader(database, path)
    finally:
        database.close()


class History(HistoryReader):
    """The file, opened for reading and writing."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        super().__init__(database, path)
        self._is_suspected_corrupt = False
        self._pod_ids = self._load_pod_ids()
        self._newest_ids = self._last_ids()
        """IDs continue from here, even in a new file."""
        self._files = SqliteFileMonitor(path)

    @classmethod
    def open(cls, path: Path) -> "History":
        """Open the file; create it if it does not exist. Raises HistoryError."""
        try:
            return cls(_open(path), path)
        except (OSError, sqlite3.Error) as error:
            raise _unusable_error(path, error) from error

    def recover(self) -> str:
        """Replace the file if another program has deleted or damaged it.

        Returns what happened if entries were lost, otherwise an empty string. Raises HistoryError;
        the next call tries again.
        """
        if not self._is_suspected_corrupt and not self._files.is_changed():
            return ""
        change = self._files.describe_change()
        with suppress(sqlite3.Error):
            self._database.close()
        try:
            lost = self._reopen()
        except (OSError, sqlite3.Error) as error:
            raise _unusable_error(self._path, error) from error
        self._pod_ids = self._load_pod_ids()
        self._is_suspected_corrupt = False
        self._files.record_write()
        return f"{self._path} {change}" if lost else ""

    def _reopen(self) -> bool:
        """Open the file, or a new one; return whether entries were lost."""
        self._is_suspected_corrupt = True
        if not _is_intact(self._path):
            _quarantine(self._path)
        self._database = _open(self._path)
        last = self._last_ids()
        lost = any(last[table] < newest for table, newest in self._newest_ids.items())
        if lost:
            _continue_ids(self._database, self._newest_ids)
        return lost

    def append(self, entries: Sequence[HistoryEntry], nodes: NodeRecords = NO_RECORDS) -> int:
        """Write the entries in one transaction; return the ID of the last. Raises HistoryError.

        `entries` are about pods.
        """
        pod_count = len(self._pod_ids)
        try:
            with self._translate_errors("write to"), self._transaction():
                rows = [self._row(entry) for entry in entries]
                self._database.executemany(_INSERT_ENTRY, rows)
                self._insert_nodes(nodes)
                newest = self._last_ids()
        except BaseException:
            # Pods that were inserted by this transaction do not exist.
            self._pod_ids = dict(list(self._pod_ids.items())[:pod_count])
            raise
        self._newest_ids = newest
        self._files.record_write()
        return newest["moments"]

    def _insert_nodes(self, nodes: NodeRecords) -> None:
        if not nodes.entries and not nodes.samples:
            return
        clock = self.retention_clock()
        moments = ((it.name, it.at, _transition_texts(it.transition)) for it in nodes.entries)
        node_tables.insert_moments(self._database, moments, clock)
        node_tables.insert_loads(self._database, nodes.samples, clock)

    def prune(self, *, elapsed: int, max_age: int, max_bytes: int) -> int:
        """Delete entries older than `max_age`, and the oldest until at most `max_bytes` are used.

        Returns the number of deleted entries. Raises HistoryError. Age is measured by the retention
        clock, not by the wall clock: it is stored in the file and advanced by `elapsed`, the
        nanoseconds since the last call.
        """
        with self._translate_errors("write to"):
            with self._transaction():
                expired = self._advance_clock(elapsed, max_age)
                node_tables.prune_nodes(
                    self._database,
                    clock=self.retention_clock(),
                    max_age=max_age,
                    max_file_bytes=max_bytes,
                )
            first = self._first_id()
            until = max(expired + 1, first + self._excess_entries(max_bytes))
            for piece in range(first, until, _DELETE_BATCH_SIZE):
                with self._transaction():
                    end = min(piece + _DELETE_BATCH_SIZE, until)
                    self._database.execute("DELETE FROM moments WHERE id < ?", (end,))
            if until > first:
                self._database.execute(
                    "DELETE FROM pods WHERE NOT EXISTS (SELECT 1 FROM moments WHERE pod = pods.id)"
                )
                self._pod_ids = self._load_pod_ids()
            self._vacuum()
            self._files.record_write()
        return max(0, until - first)

    def pod_uids(self) -> frozenset[PodUID]:
        return frozenset(self._pod_ids)

    def last_states(self, uid: PodUID) -> dict[TransitionKey, TransitionValue]:
        """Return the latest state of each part of a pod, by kind and subject; empty if unknown.

        A pod that has finished is unknown: it may come back. Raises HistoryError.
        """
        number = self._pod_ids.get(uid)
        if number is None:
            return {}
        with self._translate_errors("read"):
            rows = self._database.execute(
                "SELECT kind, subject, after FROM moments WHERE pod = ? ORDER BY id", (number,)
            ).fetchall()
        last: dict[TransitionKey, TransitionValue] = {}
        for kind, subject, after in rows:
            if kind == FINISHED:
                last.clear()
            elif kind not in _NON_STATE_KINDS:
                last[kind, subject] = parse_container_state(after) if kind == CONTAINER else after
        return last

    def last_node_values(self, node: str) -> Mapping[TransitionKey, str]:
        """Return the latest condition and taint values of a node; empty if it is unknown.

        Raises HistoryError.
        """
        with self._translate_errors("read"):
            return node_tables.last_node_values(self._database, node, without=NODE_NON_STATE_KINDS)

    def unfinished_pods(self, *, after: int = 0) -> list[ObjectReference]:
        """Return the pods whose last entry of their state is not their end, and is after an ID.

        Raises HistoryError.
        """
        values = (*_NON_STATE_KINDS, FINISHED, after)
        with self._translate_errors("read"):
            rows = self._database.execute(_SELECT_UNFINISHED, values).fetchall()
        return [ObjectReference(uid=uid, namespace=space, name=name) for uid, space, name in rows]

    def newest_id(self) -> int:
        """Return the ID of the last entry ever written; 0 if there is none. Raises HistoryError."""
        with self._translate_errors("read"):
            return self._last_id()

    def _on_error(self, error: sqlite3.Error) -> None:
        self._is_suspected_corrupt = self._is_suspected_corrupt or is_corruption(error)

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            yield

    def _load_pod_ids(self) -> dict[PodUID, int]:
        return dict(self._database.execute("SELECT uid, id FROM pods"))

    def _first_id(self) -> int:
        """Return the ID of the oldest entry, or of the next one if there is none."""
        (first,) = self._database.execute("SELECT min(id) FROM moments").fetchone()
        return self._last_id() + 1 if first is None else int(first)

    def _advance_clock(self, elapsed: int, max_age: int) -> int:
        """Advance the retention clock; return the newest ID that has expired."""
        now = self.retention_clock() + elapsed
        self._database.execute(_SET_CLOCK, (now,))
        (marked,) = self._database.execute("SELECT max(nanos) FROM retention_marks").fetchone()
        if marked is None or now - marked > max_age // _MAX_RETENTION_MARKS:
            # All entries in the file were written before now.
            self._database.execute(
                "INSERT OR REPLACE INTO retention_marks VALUES (?, ?)", (now, self._last_id())
            )
        expired_marks = "FROM retention_marks WHERE nanos <= ?"
        (expired,) = self._database.execute(
            f"SELECT max(newest) {expired_marks}", (now - max_age,)
        ).fetchone()
        self._database.execute(f"DELETE {expired_marks}", (now - max_age,))
        return 0 if expired is None else int(expired)

    def retention_clock(self) -> int:
        """Return for how long this file has been written, in nanoseconds. Raises HistoryError."""
        with self._translate_errors("read"):
            row = self._database.execute("SELECT nanos FROM retention_clock").fetchone()
        return 0 if row is None else int(row[0])

    def _excess_entries(self, max_bytes: int) -> int:
        """Return how many of the oldest entries must be deleted to stay below `max_bytes`."""
        pages, free, bytes_ = (
            self._pragma("page_count"),
            self._pragma("freelist_count"),
            self._pragma("page_size"),
        )
        used = (pages - free) * bytes_
        if used <= max_bytes:
            return 0
        entries = self._last_id() + 1 - self._first_id()
        return math.ceil(entries * (1 - _PRUNE_TARGET_FRACTION * max_bytes / used))

    def _vacuum(self) -> None:
        """Shrink the file if many of its pages are free."""
        free = self._pragma("freelist_count")
        if free > _MAX_FREE_FRACTION * self._pragma("page_count"):
            # As a script: `execute` would free only one page.
            self._database.executescript(f"PRAGMA incremental_vacuum({free})")

    def _pragma(self, name: str) -> int:
        (number,) = self._database.execute(f"PRAGMA {name}").fetchone()
        return int(number)

    def _row(self, entry: HistoryEntry) -> tuple[int, int, str, str, str, str, str, str]:
        return (self._pod_id(entry), entry.at, *_transition_texts(entry.transition))

    def _pod_id(self, entry: HistoryEntry) -> int:
        number = self._pod_ids.get(entry.uid)
        if number is None:
            number = self._database.execute(
                "INSERT INTO pods VALUES (NULL, ?, ?, ?)",
                (entry.uid, entry.namespace, entry.name),
            ).lastrowid
            assert number is not None  # noqa: S101 - a row was inserted
            self._pod_ids[entry.uid] = number
        return number

    def _last_id(self) -> int:
        return self._last_ids()["moments"]

    def _last_ids(self) -> dict[str, int]:
        """Return the last ID of each table that was ever written, 0 if there is none."""
        rows = self._database.execute("SELECT name, seq FROM sqlite_sequence")
        return {"moments": 0, "node_moments": 0, "node_loads": 0} | dict(rows.fetchall())


def _open(path: Path) -> sqlite3.Connection:
    """Open or create the file. Raises HistoryError, OSError, sqlite3.Error."""
    try:
        return open_database(path, _FORMAT)
    except DatabaseFormatError as error:
        raise HistoryError(
            f"the history {path} has format {error.version}, supported is {_FORMAT.version}; "
            "move it away to start a new one"
        ) from error


def _is_intact(path: Path) -> bool:
    """Whether the file is an undamaged history. Raises OSError, sqlite3.Error."""
    if not path.exists():
        return False
    if not path.is_file():
        raise OSError("not a regular file")
    with closing(sqlite3.connect(path)) as database:
        try:
            (version,) = database.execute("PRAGMA user_version").fetchone()
            (check,) = database.execute("PRAGMA quick_check(1)").fetchone()
        except sqlite3.DatabaseError as error:
            if is_corruption(error):
                return False
            raise
    return bool(version == _FORMAT.version and check == "ok")


def _quarantine(path: Path) -> None:
    """Set a damaged file aside for inspection, replacing an earlier one. Raises OSError."""
    with suppress(FileNotFoundError):
        if path.stat().st_size:
            path.replace(path.with_name(f"{path.name}.damaged"))
    remove_database(path)


def _continue_ids(database: sqlite3.Connection, newest: Mapping[str, int]) -> None:
    """Continue the IDs in a new file, so that a client that follows by ID confuses no entries."""
    database.execute("DELETE FROM sqlite_sequence")
    database.executemany("INSERT INTO sqlite_sequence VALUES (?, ?)", newest.items())


def _unusable_error(path: Path, error: Exception) -> HistoryError:
    return HistoryError(f"cannot use the history {path}: {error}; move it away to start a new one")


def _decode_entry(
    row: tuple[int, int, str, str, str, str, str, str, str, str, str],
) -> HistoryEntry:
    id_, at, uid, namespace, name, *rest = row
    kind, subject, before, after, reason, message = rest
    return HistoryEntry(
        id=id_,
        at=at,
        uid=PodUID(uid),
        namespace=namespace,
        name=name,
        transition=_decode_transition(kind, subject, before, after, reason, message),
    )


def _transition_texts(change: Transition) -> TransitionTexts:
    return (
        change.kind,
        change.subject,
        sanitize_text(change.before_text, _MAX_TEXT_LENGTH),
        sanitize_text(change.after_text, _MAX_TEXT_LENGTH),
        sanitize_text(change.reason, _MAX_TEXT_LENGTH),
        sanitize_text(change.message, _MAX_TEXT_LENGTH),
    )


def _decode_transition(
    kind: str, subject: str, before: str, after: str, reason: str, message: str
) -> Transition:
    if has_duration(kind) and (duration := _DURATION.fullmatch(after)):
        seconds = float(duration[1])
        return Transition(kind=kind, duration_seconds=seconds, reason=reason, message=message)
    if kind != CONTAINER:
        return Transition(
            kind=kind, subject=subject, before=before, after=after, reason=reason, message=message
        )
    return Transition(
        kind=kind,
        subject=subject,
        state_before=parse_container_state(before),
        state_after=parse_container_state(after),
        reason=reason,
        message=message,
    )
