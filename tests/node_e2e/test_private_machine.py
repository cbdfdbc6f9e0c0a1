"""The root of a run has the entries of `/`, and more."""

import os
from pathlib import Path

import pytest

from podstatus.testing.servers.binaries import ServerBinaries
from tests.node_e2e.private_machine import private_command
from tests.node_e2e.programs import Programs


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    servers = ServerBinaries(kube_apiserver=tmp_path / "kube-apiserver", etcd=tmp_path / "etcd")
    names = set(Programs.__struct_fields__) - {"servers"}
    programs = Programs(servers=servers, **{name: Path("/x", name) for name in names})
    return private_command(programs, ["true"])


def test_every_entry_of_the_root_is_shown(words: list[str]) -> None:
    assert words[0] == "/x/bubblewrap"
    assert {str(path) for path in Path("/").iterdir()} <= set(words)
    assert words[words.index("--proc") + 1] == "/proc"
    assert "--dev-bind /proc" not in " ".join(words)


def test_programs_are_added_to_the_root(words: list[str]) -> None:
    line = " ".join(words)
    assert "--ro-bind /x/agnhost /agnhost --ro-bind /x/agnhost /agnhost-2" in line
    assert line.endswith(f"--ro-bind /x/bash {os.path.realpath('/bin/sh')} -- true")


def test_all_processes_end_with_the_command(words: list[str]) -> None:
    assert {"--unshare-pid", "--die-with-parent", "--unshare-net"} <= set(words)
