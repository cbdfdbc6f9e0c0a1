"""A container's command and exec commands are confined alike."""

import asyncio
import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from podstatus.kube.objects.pod import Pod
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.process_runtime import ProcessRuntime
from podstatus.runtime.process.spec.capabilities import DEFAULT, SANDBOX_DEFAULT, capability_numbers
from podstatus.runtime.streams import StreamOptions
from tests.support.processes.process_pods import pod_of
from tests.support.processes.process_runtime import need_bubblewrap, open_process_runtime

SHOWN = ("CapInh", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs", "Seccomp")
PYTHON = "/usr/bin/python3"
CALLS = f"""
import ctypes, errno, json, os
libc = ctypes.CDLL(None, use_errno=True)
def call(*words):
    result = libc.syscall(*map(ctypes.c_long, words))
    return errno.errorcode[ctypes.get_errno()] if result < 0 else "done"
machine = os.uname().machine
keyctl, unshare = (250, 272) if machine == "x86_64" else (219, 97)
shown = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps(dict(
    unshare=call(unshare, 0x10000000 | 0x20000 | 0x2000000),
    keyctl=call(keyctl, 11, -4, 0, 0),
    clone3=call(435, 0, 0),
    **dict((name, shown[name].strip()) for name in {SHOWN!r}),
)), flush=True)
"""
REFUSED = {"unshare": "EPERM", "keyctl": "EPERM", "clone3": "ENOSYS"}
need_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has capabilities to lose")


def seen_by(
    folder: Path, pod: Pod, *, isolated: bool, allows_unconfined: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a container's command observed, and what an exec command observed."""

    async def scenario() -> tuple[dict[str, Any], dict[str, Any]]:
        async with open_process_runtime(
            folder, isolated=isolated, allows_unconfined=allows_unconfined
        ) as runtime:
            try:
                return await _both(runtime, pod, folder)
            finally:
                await runtime.remove_pod(pod.uid)

    return asyncio.run(scenario())


async def _both(
    runtime: ProcessRuntime, pod: Pod, folder: Path
) -> tuple[dict[str, Any], dict[str, Any]]:
    await runtime.start_pod(pod)
    (container,) = pod.spec.containers or ()
    id = await runtime.start_container(pod, container, restart_count=0)
    async with asyncio.timeout(60):
        first = await asyncio.to_thread(_first_line, folder)
        session = await runtime.exec(pod.uid, id, (PYTHON, "-I", "-c", CALLS), StreamOptions())
        output = b""
        while (piece := await session.read()) is not None:
            output += piece[1]
        await session.close()
    return json.loads(first), json.loads(output)


def _first_line(folder: Path) -> bytes:
    """Return the first line of the container's log, without the prefix."""
    while not (texts := [text for log in folder.rglob("0.log") if (text := log.read_bytes())]):
        time.sleep(0.01)
    return texts[0].split(b" ", 3)[3]


def pod_with(context: dict[str, Any]) -> Pod:
    script = f"{CALLS}\nimport time; time.sleep(600)"
    return pod_of({"command": [PYTHON, "-I", "-c", script], "securityContext": context})


def bits(names: frozenset[str]) -> str:
    return f"{sum(1 << number for number in capability_numbers(names)):016x}"


@pytest.fixture(params=[pytest.param(True, marks=need_bubblewrap, id="bubblewrap"), False])
def isolated(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@need_root
def test_root_keeps_the_default_capabilities_and_a_filter(folder: Path, *, isolated: bool) -> None:
    mask = bits(SANDBOX_DEFAULT if isolated else DEFAULT)
    capabilities = dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd"), mask)
    expected = {**REFUSED, **capabilities, "NoNewPrivs": "1", "Seccomp": "2"}
    assert seen_by(folder, pod_with({}), isolated=isolated) == (expected, expected)


@need_root
def test_another_user_has_no_capability_but_the_filter(folder: Path, *, isolated: bool) -> None:
    context = {"runAsUser": 65534, "capabilities": {"drop": ["ALL"]}}
    first, later = seen_by(folder, pod_with(context), isolated=isolated)
    none = dict.fromkeys(("CapInh", "CapPrm", "CapEff"), bits(frozenset()))
    for found in (first, later):
        # The command switches users inside of bubblewrap; it cannot become root again.
        assert int(found.pop("CapBnd"), 16) | int(bits(DEFAULT), 16) == int(bits(DEFAULT), 16)
        assert found == {**REFUSED, **none, "NoNewPrivs": "1", "Seccomp": "2"}


@need_root
def test_what_is_not_confined_still_gains_nothing(folder: Path, *, isolated: bool) -> None:
    context = {"seccompProfile": {"type": "Unconfined"}}
    both = seen_by(folder, pod_with(context), isolated=isolated, allows_unconfined=True)
    for found in both:
        assert (found["Seccomp"], found["NoNewPrivs"]) == ("0", "1")
        assert found["CapBnd"] == bits(SANDBOX_DEFAULT if isolated else DEFAULT)


RMID_FORCED = Path("/proc/sys/kernel/shm_rmid_forced")
need_sysctls = pytest.mark.skipif(
    not os.access(RMID_FORCED, os.W_OK), reason="/proc/sys is read-only on this machine"
)


def pod_with_sysctl(value: str) -> Pod:
    sysctls = [{"name": "kernel/shm_rmid_forced", "value": value}]
    return pod_of({"command": ["sleep", "600"]}, securityContext={"sysctls": sysctls})


@need_root
@need_bubblewrap
@need_sysctls
@pytest.mark.parametrize("value", ["0", "1"])
def test_a_sysctl_is_that_of_the_container_alone(folder: Path, value: str) -> None:
    before = RMID_FORCED.read_bytes()
    pod = pod_with_sysctl(value)

    async def scenario() -> bytes:
        async with open_process_runtime(folder, isolated=True) as runtime:
            try:
                return await _read_by_exec(runtime, pod, RMID_FORCED)
            finally:
                await runtime.remove_pod(pod.uid)

    assert asyncio.run(scenario()) == value.encode() + b"\n"
    assert RMID_FORCED.read_bytes() == before


@need_root
@need_bubblewrap
@need_sysctls
def test_an_invalid_value_of_a_sysctl_is_a_start_error(folder: Path) -> None:
    pod = pod_with_sysctl("many")

    async def scenario() -> None:
        async with open_process_runtime(folder, isolated=True) as runtime:
            try:
                await runtime.start_pod(pod)
                (container,) = pod.spec.containers or ()
                await runtime.start_container(pod, container, restart_count=0)
            finally:
                await runtime.remove_pod(pod.uid)

    with pytest.raises(CannotStartError) as failed:
        asyncio.run(scenario())
    expected = 'sysctl "kernel.shm_rmid_forced" = "many": invalid argument'
    assert expected in failed.value.message


async def _read_by_exec(runtime: ProcessRuntime, pod: Pod, file: Path) -> bytes:
    await runtime.start_pod(pod)
    (container,) = pod.spec.containers or ()
    id = await runtime.start_container(pod, container, restart_count=0)
    async with asyncio.timeout(60):
        session = await runtime.exec(pod.uid, id, ("cat", str(file)), StreamOptions())
        output = b""
        while (piece := await session.read()) is not None:
            output += piece[1]
        await session.close()
    return output
