"""The root directory: its lock, and the files that commands read."""

import errno
import json
import os
import re
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from podstatus.agent.daemon.endpoints_file import AgentEndpoints, RootDirError, read_endpoints
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.agent.daemon.run_agent import _to_agent_error
from podstatus.apiserver.state_dir import StateDir, lock_holder

TOKEN = "t"  # noqa: S105 - of a test
ENDPOINTS = AgentEndpoints(
    apiserver="https://127.0.0.1:1", agent="http://127.0.0.1:2", token=TOKEN, node="n", pid=3
)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_all_of_it_is_its_owners_alone(tmp_path: Path) -> None:
    with RootDir(tmp_path / "a" / "root") as root:
        root.write_endpoints(ENDPOINTS)
        kubeconfig = root.write_kubeconfig(b"kubeconfig")
        assert mode(root.path) == 0o700
        assert mode(root.folder("runtime")) == 0o700
        assert mode(root.path / "endpoints.json") == mode(kubeconfig) == 0o600


def test_what_is_announced_can_be_read_until_it_is_withdrawn(tmp_path: Path) -> None:
    with RootDir(tmp_path) as root:
        assert read_endpoints(tmp_path) is None
        root.write_endpoints(ENDPOINTS)
        assert read_endpoints(tmp_path) == ENDPOINTS
        endpoints = json.loads((tmp_path / "endpoints.json").read_bytes())
        assert {"apiserver", "agent", "token"} <= set(endpoints)
        root.remove_endpoints()
        assert read_endpoints(tmp_path) is None


def test_a_second_agent_reports_the_pid_and_start_of_the_first(tmp_path: Path) -> None:
    with RootDir(tmp_path):
        with pytest.raises(RootDirError) as error:
            RootDir(tmp_path)
        who = rf"pid {os.getpid()}, since 20\d\d-[\dT:-]+Z"
        pattern = rf"in use by another agent or observer \({who}\); stop it, or choose another "
        assert re.search(pattern, str(error.value))
        holder = lock_holder(tmp_path)
        assert holder is not None
        assert holder.pid == os.getpid()
    assert lock_holder(tmp_path) is None
    RootDir(tmp_path).close()


def test_a_command_that_uses_the_directory_is_named(tmp_path: Path) -> None:
    lock = StateDir(tmp_path, used_by="agent or observer", command="podstatus down")
    with pytest.raises(RootDirError) as error:
        RootDir(tmp_path)
    lock.close()
    assert f"{tmp_path} is in use by podstatus down (pid {os.getpid()}, " in str(error.value)
    assert "); wait until it has ended, or choose another directory" in str(error.value)


def test_an_agent_starts_while_commands_look_for_it(tmp_path: Path) -> None:
    RootDir(tmp_path).close()
    is_over = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            lock_holder(tmp_path)

    with ThreadPoolExecutor() as commands:
        for _ in range(4):
            commands.submit(look)
        try:
            for _ in range(100):
                with RootDir(tmp_path):
                    assert lock_holder(tmp_path) is not None
        finally:
            is_over.set()


def test_what_a_killed_agent_announced_is_gone_with_the_next_start(tmp_path: Path) -> None:
    with RootDir(tmp_path) as root:
        root.write_endpoints(ENDPOINTS)
    with RootDir(tmp_path):
        assert read_endpoints(tmp_path) is None


@pytest.mark.parametrize("below", ["file", "file/root", "kept"])
def test_a_folder_that_cannot_be_used_says_why_and_what_to_do(tmp_path: Path, below: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "runtime").touch()
    with pytest.raises(RootDirError, match=r"cannot use .*--root-dir"):
        RootDir(tmp_path / below)
    assert lock_holder(tmp_path / "kept") is None


def test_one_on_a_read_only_disk_says_so() -> None:
    # Not even root can create a directory there.
    with pytest.raises(RootDirError, match=r"cannot use /proc/podstatus: .*--root-dir"):
        RootDir(Path("/proc/podstatus"))


def test_an_invalid_endpoints_file_is_reported(tmp_path: Path) -> None:
    (tmp_path / "endpoints.json").write_text("{")
    with pytest.raises(RootDirError, match=r"cannot read .*endpoints\.json"):
        read_endpoints(tmp_path)


def test_the_token_is_not_shown() -> None:
    assert "token" not in repr(ENDPOINTS)


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 1), (errno.EDQUOT, 1), (errno.EIO, 2)])
def test_a_full_disk_is_worth_another_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    """A supervisor restarts an agent unless it exits with 2."""

    def fails(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    with RootDir(tmp_path) as root:
        monkeypatch.setattr("podstatus.apiserver.state_dir.replace_file", fails)
        with pytest.raises(RootDirError) as raised:
            root.write_endpoints(ENDPOINTS)
    assert _to_agent_error(raised.value).code == code
