"""What happened to pods, on the disk: every transition with its time, for a while.

    history = History.open(folder / "history.db")
    history.append([Moment(...), ...])
    history.timeline("default", "web-0")

SQLite in WAL mode, `synchronous=NORMAL`: a killed process loses nothing that was written, a power
cut at most the last transactions, and neither the file. One thread writes; who reads while it does
opens the file anew, with `open_history_reader`. Why SQLite, and what it costs:
docs/decisions/0029-the-history.md.

What other programs do to the file while it is written is noticed by `mend`: a file that is gone
or damaged is set aside, and a new one begins.

    HistoryError     the file cannot be used; the message says why and what to do
"""

import math
import sqlite3
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import quote

import msgspec

from podstatus.base.sqlite_files import SqliteFileMonitor
from podstatus.kube.objects.pod import PodUID
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.summary.pod import sanitize_text
from podstatus.observe.transitions.resume import TransitionKey, TransitionValue
from podstatus.observe.transitions.status_transitions import (
    AGENT_DOWNTIME,
    CONTAINER,
    EVENT,
    FINISHED,
    FOREIGN_WRITE,
    SYNC,
    Transition,
)

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
_SCHEMA_VERSION = 1
"""Of the database, in its `user_version`."""
_SET_CLOCK = """
INSERT INTO retention_clock VALUES (1, ?) ON CONFLICT DO UPDATE SET nanos = excluded.nanos
"""
_MAX_RETENTION_MARKS = 1_000
"""Into how many pieces the time that moments are kept is divided, at most."""
_INSERT_ENTRY = "INSERT INTO moments VALUES (NULL, ?, ?, ?, ?, ?, ?, ?, ?)"
_SELECT_ENTRIES = """
SELECT moments.id, at, uid, namespace, name, kind, subject, before, after, reason, message
FROM moments JOIN pods ON pods.id = moments.pod
"""
_SELECT_UNFINISHED = """
SELECT uid, namespace, name
FROM pods JOIN moments ON moments.id = (SELECT max(id) FROM moments WHERE pod = pods.id)
WHERE kind <> ? AND moments.id > ?
"""
_NON_STATE_KINDS = (EVENT, SYNC, FOREIGN_WRITE, AGENT_DOWNTIME)
"""What is no part of a pod, and may be said of one that has ended."""
_MAX_TEXT_LENGTH = 1024
"""Characters of a message that are kept."""
_BUSY_SECONDS = 5.0
_MAX_TIMELINE_ENTRIES = 10_000
"""Moments that are read of the pods of one name: the newest."""
_DELETE_BATCH_SIZE = 20_000
"""Moments that are forgotten in one transaction, so that the journal stays small."""
_JOURNAL_BYTES = 8 * 2**20
_PRUNE_TARGET_FRACTION = 0.9
"""Of the size that it may have, what is left when it became too large: not to begin again at
once."""
_CORRUPTION_CODES = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR)
"""Primary result codes of a file that is damaged, or has lost its tables."""
_MAX_FREE_FRACTION = 0.25
"""Of the file, what may lie fallow before it is given back: it is used again otherwise."""


class HistoryError(Exception):
    """The history cannot be used."""


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A transition of a pod, and when it was seen."""

    at: int
    """Nanoseconds since the Unix epoch."""
    uid: PodUID
    namespace: str
    name: str
    transition: Transition
    id: int = 0
    """Grows with every moment that is written; 0 until then."""


class HistoryPod(msgspec.Struct, frozen=True, gc=False):
    """A pod that something was noted of."""

    uid: PodUID
    namespace: str
    name: str


class HistoryReader:
    """What is in the file, for one thread at a time. All methods raise HistoryError."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self._path = path

    def close(self) -> None:
        """Let go of the file."""
        self._database.close()

    def timeline(self, namespace: str, name: str, *, after: int = 0) -> list[HistoryEntry]:
        """What happened to the pods of this name, the oldest first; later than an id.

        Of very many moments it is the newest.
        """
        where = (
            "WHERE namespace = ? AND name = ? AND moments.id > ? ORDER BY moments.id DESC LIMIT ?"
        )
        return self._read(where, (namespace, name, after, _MAX_TIMELINE_ENTRIES))[::-1]

    def entries_after(self, after: int, *, limit: int) -> list[HistoryEntry]:
        """What was written after this id, the oldest first."""
        return self._read("WHERE moments.id > ? ORDER BY moments.id LIMIT ?", (after, limit))

    def count(self) -> int:
        """How many moments there are."""
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
        """Called with every failure."""


@contextmanager
def open_history_reader(path: Path) -> Iterator[HistoryReader]:
    """The history in this file, to be read while another thread or process writes.

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
    """The file, for the one who writes it."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        super().__init__(database, path)
        self._is_suspected_corrupt = False
        self._pod_ids = self._load_pod_ids()
        self._newest_id = self._last_id()
        """Ids go on from here, whatever becomes of the file."""
        self._files = SqliteFileMonitor(path)

    @classmethod
    def open(cls, path: Path) -> "History":
        """The history in this file; it is made if it is not there. Raises HistoryError."""
        try:
            return cls(_open(path), path)
        except (OSError, sqlite3.Error) as error:
            raise _unusable_error(path, error) from error

    def recover(self) -> str:
        """Go on with a new file if other programs have deleted or damaged this one.

        What happened, if moments were lost; empty otherwise. Raises HistoryError: it is tried again
        with the next call.
        """
        if not self._is_suspected_corrupt and not self._files.is_changed():
            return ""
        happened = self._files.describe_change()
        with suppress(sqlite3.Error):
            self._database.close()
        try:
            lost = self._reopen()
        except (OSError, sqlite3.Error) as error:
            raise _unusable_error(self._path, error) from error
        self._pod_ids = self._load_pod_ids()
        self._is_suspected_corrupt = False
        self._files.record_write()
        return f"{self._path} {happened}" if lost else ""

    def _reopen(self) -> bool:
        """Open the file, or a new one; whether moments were lost."""
        self._is_suspected_corrupt = True
        found = _open_intact(self._path)
        if found is None:
            _quarantine(self._path)
            found = _open(self._path)
        self._database = found
        lost = self._last_id() < self._newest_id
        if lost:
            _continue_ids(found, self._newest_id)
        return lost

    def append(self, entries: Sequence[HistoryEntry]) -> int:
        """Write these down in one transaction; the id of the last. Raises HistoryError."""
        known = len(self._pod_ids)
        try:
            with self._translate_errors("write to"), self._transaction():
                rows = [self._row(moment) for moment in entries]
                self._database.executemany(_INSERT_ENTRY, rows)
                newest = self._last_id()
        except BaseException:
            # What was numbered in the transaction is not there.
            self._pod_ids = dict(list(self._pod_ids.items())[:known])
            raise
        self._newest_id = newest
        self._files.record_write()
        return newest

    def prune(self, *, elapsed: int, max_age: int, max_bytes: int) -> int:
        """Forget what was written so many nanoseconds ago, and the oldest while it takes more than
        so many bytes; how many moments went. Raises HistoryError.

        The retention clock tells how long ago something was written, whatever the wall clock
        showed: it is in the file, and goes on by what has passed since the last call.
        """
        with self._translate_errors("write to"):
            with self._transaction():
                expired = self._advance_clock(elapsed, max_age)
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
        """All of which something is known."""
        return frozenset(self._pod_ids)

    def last_states(self, uid: PodUID) -> dict[TransitionKey, TransitionValue]:
        """The last word on each part of a pod, by kind and subject; empty if it is not known.

        One that has ended is not known any more: it may come back. Raises HistoryError.
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

    def unfinished_pods(self, *, after: int = 0) -> list[HistoryPod]:
        """The pods that were there when something was last noted of them, later than an id.

        Raises HistoryError.
        """
        with self._translate_errors("read"):
            rows = self._database.execute(_SELECT_UNFINISHED, (FINISHED, after)).fetchall()
        return [HistoryPod(*row) for row in rows]

    def newest_id(self) -> int:
        """The id of the last moment that was written, 0 if none ever was. Raises HistoryError."""
        with self._translate_errors("read"):
            return self._last_id()

    def _on_error(self, error: sqlite3.Error) -> None:
        # Made by the sqlite3 module itself, an error has no code.
        code = getattr(error, "sqlite_errorcode", 0)
        self._is_suspected_corrupt = self._is_suspected_corrupt or code & 0xFF in _CORRUPTION_CODES

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._database:
            self._database.execute("BEGIN IMMEDIATE")
            yield

    def _load_pod_ids(self) -> dict[PodUID, int]:
        return dict(self._database.execute("SELECT uid, id FROM pods"))

    def _first_id(self) -> int:
        """The id of the oldest moment, or of the one that will be."""
        (first,) = self._database.execute("SELECT min(id) FROM moments").fetchone()
        return self._last_id() + 1 if first is None else int(first)

    def _advance_clock(self, elapsed: int, max_age: int) -> int:
        """Move the retention clock on; the newest id that was written before what is kept."""
        now = self.retention_clock() + elapsed
        self._database.execute(_SET_CLOCK, (now,))
        (marked,) = self._database.execute("SELECT max(nanos) FROM retention_marks").fetchone()
        if marked is None or now - marked > max_age // _MAX_RETENTION_MARKS:
            # All that is in the file was written by now.
            self._database.execute(
                "INSERT OR REPLACE INTO retention_marks VALUES (?, ?)", (now, self._last_id())
            )
        over = "FROM retention_marks WHERE nanos <= ?"
        (expired,) = self._database.execute(
            f"SELECT max(newest) {over}", (now - max_age,)
        ).fetchone()
        self._database.execute(f"DELETE {over}", (now - max_age,))
        return 0 if expired is None else int(expired)

    def retention_clock(self) -> int:
        """How long this file has been written, in nanoseconds. Raises HistoryError."""
        with self._translate_errors("read"):
            row = self._database.execute("SELECT nanos FROM retention_clock").fetchone()
        return 0 if row is None else int(row[0])

    def _excess_entries(self, max_bytes: int) -> int:
        """How many of the oldest moments have to go, for the rest to take so many bytes."""
        pages, free, bytes_ = (
            self._pragma("page_count"),
            self._pragma("freelist_count"),
            self._pragma("page_size"),
        )
        used = (pages - free) * bytes_
        if used <= max_bytes:
            return 0
        moments = self._last_id() + 1 - self._first_id()
        return math.ceil(moments * (1 - _PRUNE_TARGET_FRACTION * max_bytes / used))

    def _vacuum(self) -> None:
        """Make the file smaller if much of it is not used."""
        free = self._pragma("freelist_count")
        if free > _MAX_FREE_FRACTION * self._pragma("page_count"):
            # As a script: `execute` would let go of one page.
            self._database.executescript(f"PRAGMA incremental_vacuum({free})")

    def _pragma(self, name: str) -> int:
        (number,) = self._database.execute(f"PRAGMA {name}").fetchone()
        return int(number)

    def _row(self, moment: HistoryEntry) -> tuple[int, int, str, str, str, str, str, str]:
        change = moment.transition
        return (
            self._pod_id(moment),
            moment.at,
            change.kind,
            change.subject,
            sanitize_text(change.before_text, _MAX_TEXT_LENGTH),
            sanitize_text(change.after_text, _MAX_TEXT_LENGTH),
            sanitize_text(change.reason, _MAX_TEXT_LENGTH),
            sanitize_text(change.message, _MAX_TEXT_LENGTH),
        )

    def _pod_id(self, moment: HistoryEntry) -> int:
        number = self._pod_ids.get(moment.uid)
        if number is None:
            number = self._database.execute(
                "INSERT INTO pods VALUES (NULL, ?, ?, ?)",
                (moment.uid, moment.namespace, moment.name),
            ).lastrowid
            assert number is not None  # noqa: S101 - a row was inserted
            self._pod_ids[moment.uid] = number
        return number

    def _last_id(self) -> int:
        row = self._database.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'moments'"
        ).fetchone()
        return 0 if row is None else int(row[0])


def _open(path: Path) -> sqlite3.Connection:
    """The file, made if it is not there. Raises HistoryError, OSError, sqlite3.Error."""
    _require_regular_file(path)
    # First, since SQLite gives its journal the permissions of the database.
    path.touch(mode=0o600)
    database = _connect(path)
    try:
        _prepare(database, path)
    except BaseException:
        database.close()
        raise
    return database


def _open_intact(path: Path) -> sqlite3.Connection | None:
    """The file, if it is a history and undamaged. Raises HistoryError, OSError."""
    _require_regular_file(path)
    if not path.exists():
        return None
    database = _connect(path)
    try:
        (version,) = database.execute("PRAGMA user_version").fetchone()
        (sound,) = database.execute("PRAGMA quick_check(1)").fetchone()
        if version == _SCHEMA_VERSION and sound == "ok":
            _prepare(database, path)
            return database
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode & 0xFF not in _CORRUPTION_CODES:
            database.close()
            raise
    database.close()
    return None


def _require_regular_file(path: Path) -> None:
    """A pipe would be waited for. Raises HistoryError."""
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(path.stat().st_mode):
            raise HistoryError(
                f"cannot use the history {path}: it is not a regular file; remove it"
            )


def _quarantine(path: Path) -> None:
    """Keep what is left of a damaged file, one of them, for people. Raises OSError."""
    with suppress(FileNotFoundError):
        if path.stat().st_size:
            path.replace(path.with_name(f"{path.name}.damaged"))
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def _continue_ids(database: sqlite3.Connection, newest: int) -> None:
    """Clients that follow by number must not take one moment for another."""
    database.execute("DELETE FROM sqlite_sequence WHERE name = 'moments'")
    database.execute("INSERT INTO sqlite_sequence VALUES ('moments', ?)", (newest,))


def _unusable_error(path: Path, error: Exception) -> HistoryError:
    return HistoryError(f"cannot use the history {path}: {error}; move it away to begin a new one")


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(
        path, isolation_level=None, check_same_thread=False, timeout=_BUSY_SECONDS
    )


def _prepare(database: sqlite3.Connection, path: Path) -> None:
    (version,) = database.execute("PRAGMA user_version").fetchone()
    if version not in (0, _SCHEMA_VERSION):
        raise HistoryError(
            f"the history {path} has the format {version}, known is {_SCHEMA_VERSION}; "
            "move it away to begin a new one"
        )
    if version != _SCHEMA_VERSION:
        # Before there are tables: later it would take a rewrite of the whole file.
        database.execute("PRAGMA auto_vacuum = INCREMENTAL")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
    database.execute("PRAGMA synchronous = NORMAL")
    database.executescript(_TABLES)
    if version != _SCHEMA_VERSION:
        # What is there is opened without a write, also on a full disk.
        database.execute(f"PRAGMA user_version = {_SCHEMA_VERSION}")


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


def _decode_transition(
    kind: str, subject: str, before: str, after: str, reason: str, message: str
) -> Transition:
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
