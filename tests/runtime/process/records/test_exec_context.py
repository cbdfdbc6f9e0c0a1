"""The exec context in launch records, and for records of older agents, which have none."""

import os
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from podstatus.runtime.process.cgroups.pod_cgroups import CgroupPaths
from podstatus.runtime.process.records.launch import (
    LogLimits,
    exec_context,
    launch_record,
)
from podstatus.runtime.process.records.models import ExecContext, LaunchRecord
from podstatus.runtime.process.spec.capabilities import CAPABILITIES
from tests.runtime.process.a_log import a_launch
from tests.runtime.process.preparer_scene import BWRAP, Setting
from tests.support.processes.process_pods import pod_of

KILL, SETGID, SETUID, SYS_ADMIN = 5, 6, 7, 21
ONLY_KILL = {"drop": ["ALL"], "add": ["KILL"]}
need_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can switch users")


def launch_of(root: Path, *, isolated: bool, **container: Any) -> LaunchRecord:
    pod = pod_of({"command": ["setpriv", "--nnp", "--", "sleep"], **container})
    command = Setting(root, BWRAP if isolated else None).start(pod)
    first = (pod.spec.containers or ())[0]
    identity: dict[str, Any] = {"id": "1", "restart_count": 0, "sandbox_id": "s", "created_at": 1}
    return launch_record(first, command, CgroupPaths(), LogLimits(), **identity)


def without_context(launch: LaunchRecord) -> LaunchRecord:
    return structs.replace(launch, exec_context=None)


@need_root
@pytest.mark.parametrize(
    ("security", "expected"),
    [
        ({"capabilities": ONLY_KILL}, ExecContext(cwd="/x", capabilities=(KILL,))),
        (
            {"runAsUser": 7, "capabilities": {"drop": ["ALL"]}},
            ExecContext(cwd="/x", user=7, group=7, groups=(), capabilities=()),
        ),
        (
            {"runAsUser": 0, "runAsGroup": 8, "capabilities": ONLY_KILL},
            ExecContext(cwd="/x", user=0, group=8, groups=(), capabilities=(KILL, SETGID, SETUID)),
        ),
    ],
)
def test_an_isolated_container_passes_on_its_user_and_capabilities(
    tmp_path: Path, security: dict[str, Any], expected: ExecContext
) -> None:
    launch = launch_of(tmp_path, isolated=True, workingDir="/x", securityContext=security)
    assert launch.exec_context == exec_context(launch) == expected


@pytest.mark.parametrize("isolated", [True, False])
@pytest.mark.parametrize(
    "security",
    [
        {},
        {"capabilities": {"drop": ["ALL"]}},
        pytest.param({"runAsUser": 7, "runAsGroup": 8}, marks=need_root),
        pytest.param({"runAsUser": 0, "runAsGroup": 8}, marks=need_root),
    ],
)
def test_the_context_of_an_older_record_is_derived_from_it(
    tmp_path: Path, security: dict[str, Any], *, isolated: bool
) -> None:
    launch = launch_of(tmp_path, isolated=isolated, workingDir="/x", securityContext=security)
    assert exec_context(without_context(launch)) == launch.exec_context


def test_groups_are_those_of_an_older_record() -> None:
    switch = ("/usr/bin/setpriv", "--reuid=7", "--regid=8", "--groups=9,10", "--inh-caps=-all")
    launch = a_launch(bubblewrap=("bwrap", "--chdir", "/"), argv=(*switch, "--", "sleep"))
    assert exec_context(launch).groups == (9, 10)


@pytest.mark.parametrize(
    "argv",
    [
        ("sleep", "--", "1"),
        ("setpriv", "--reuid=7"),
        ("setpriv", "--reuid", "7", "--regid", "8", "--", "sleep"),
        ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--", "sleep"),
        ("sleep", "setpriv", "--reuid=7", "--regid=8", "--clear-groups", "--", "sleep"),
    ],
)
def test_other_commands_of_older_records_do_not_switch_users(argv: tuple[str, ...]) -> None:
    launch = a_launch(bubblewrap=("bwrap", "--chdir", "/x"), argv=argv)
    assert exec_context(launch) == ExecContext(cwd="/x", capabilities=())


def test_capabilities_have_the_numbers_of_the_kernel() -> None:
    assert (CAPABILITIES[KILL], CAPABILITIES[SYS_ADMIN]) == ("KILL", "SYS_ADMIN")
    assert CAPABILITIES.index("CHECKPOINT_RESTORE") == len(CAPABILITIES) - 1 == 40
