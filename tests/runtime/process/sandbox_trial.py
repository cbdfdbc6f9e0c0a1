"""Prepare and run containers under bubblewrap, as the user that runs this program: for tests.

    python sandbox_trial.py   < {"root", "pod", "config_maps", "secrets", "killed"}

Reads one trial a line, and prints a line with the result of each of its containers: exit code,
output, message, or the rejection.
"""

import asyncio
import base64
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.launch_preparer import ContainerPreparer
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.records.models import PreparedCommand
from podstatus.runtime.process.sandbox.isolation import Bubblewrap, find_bubblewrap
from podstatus.runtime.process.service_links import NoServices
from podstatus.runtime.process.shim.bubblewrap import open_host_paths
from podstatus.testing.clock import FakeClock
from tests.support.processes.process_pods import ObjectsInMemory


def outlives(command: PreparedCommand) -> bool:
    """Return whether the command still runs some time after its bubblewrap was killed."""
    inherited = handed_files(command)
    status_pipe = os.pipe()
    bwrap = subprocess.Popen(
        [
            (command.bubblewrap or ("",))[0],
            *(
                "--args",
                str(inherited[0]),
                "--json-status-fd",
                str(status_pipe[1]),
                "--",
                *command.argv,
            ),
        ],
        pass_fds=[*inherited, status_pipe[1]],
        env={},
    )
    for file in (*inherited, status_pipe[1]):
        os.close(file)
    # Written in pieces: wait for a complete line.
    with os.fdopen(status_pipe[0], "rb") as status:
        child = msgspec.json.decode(status.readline())["child-pid"]
    while Path(f"/proc/{child}/comm").read_text().strip() != command.argv[-2]:
        os.sched_yield()
    ended = os.pidfd_open(child)
    bwrap.kill()
    bwrap.wait()
    gone = bool(select.select([ended], [], [], 10)[0])
    os.close(ended)
    if not gone:
        os.kill(child, signal.SIGKILL)
    return not gone


def handed_files(command: PreparedCommand) -> list[int]:
    """Open the file with bubblewrap's arguments, and the host paths they name."""
    arguments = list(command.bubblewrap or ())
    opened = open_host_paths([msgspec.structs.asdict(path) for path in command.host_paths])
    for host_path, file in zip(command.host_paths, opened, strict=True):
        arguments[host_path.argument] = str(file)
    words = b"".join(argument.encode() + b"\0" for argument in arguments[1:])
    return [_in_memory(words), *opened]


def _in_memory(content: bytes) -> int:
    handle = os.memfd_create("handed")
    os.write(handle, content)
    os.lseek(handle, 0, os.SEEK_SET)
    return handle


def run(command: PreparedCommand) -> subprocess.CompletedProcess[str]:
    """Run it as the shim does, with none of our arguments or variables."""
    return run_with(command, handed_files(command))


def run_with(command: PreparedCommand, inherited: list[int]) -> subprocess.CompletedProcess[str]:
    """Run it with files that were opened before; closes them."""
    handles = {"--args": inherited[0]}
    if command.seccomp:
        handles["--seccomp"] = _in_memory(base64.b64decode(command.seccomp))
    options = [word for name, handle in handles.items() for word in (name, str(handle))]
    inherited = [*handles.values(), *inherited[1:]]
    try:
        return subprocess.run(
            [(command.bubblewrap or ("",))[0], *options, "--", *command.argv],
            pass_fds=inherited,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            env={},
            timeout=60,
            check=False,
        )
    finally:
        for file in inherited:
            os.close(file)


async def trial(request: dict[str, Any], bubblewrap: Bubblewrap) -> list[dict[str, Any]]:
    """Return the result of each container."""
    objects = ObjectsInMemory()
    for name, texts in request.get("config_maps", {}).items():
        objects.put_config_map(name, **texts)
    for name, texts in request.get("secrets", {}).items():
        objects.put_secret(name, **{key: text.encode() for key, text in texts.items()})
    root, pod = Path(request["root"]), from_document(request["pod"], Pod)
    preparer = ContainerPreparer(
        root,
        bubblewrap=bubblewrap,
        objects=objects,
        services=NoServices(),
        host_ips=lambda: ["10.0.0.1"],
        allocatable=lambda: {"cpu": Quantity("2")},
        hidden=[],
        clock=FakeClock(),
    )
    results: list[dict[str, Any]] = []
    for number, container in enumerate(pod.spec.containers or ()):
        place = PodFolder(root, pod.uid).container(f"attempt{number}")
        try:
            await preparer.prepare_pod(pod)
            command = await preparer.prepare_container(pod, container, place)
        except CannotStartError as error:
            results.append({"refused": error.message, "reason": error.reason})
            continue
        if request["killed"][number]:
            results.append({"left": outlives(command)})
            continue
        done = run(command)
        results.append(
            {
                "code": done.returncode,
                "out": done.stdout,
                "err": done.stderr,
                "message": place.message.read_text(errors="replace"),
            }
        )
    return results


if __name__ == "__main__":
    bubblewrap = find_bubblewrap()
    for line in sys.stdin.buffer:
        results = asyncio.run(trial(msgspec.json.decode(line), bubblewrap))
        sys.stdout.buffer.write(msgspec.json.encode(results) + b"\n")
        sys.stdout.buffer.flush()
