"""Destructive operations on a state, each in its own process to protect the test process.

Each function is run by `alone` and raises an exception if the test fails.
"""

import io
import logging
import os
import random
import resource
import select
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from podstatus.checkpoint.allocation_checkpoint import FileState
from podstatus.checkpoint.errors import CheckpointWriteError, UnreadableCheckpointError
from podstatus.checkpoint.outbox_files import FileOutbox
from podstatus.kube.objects.allocation import PodResourceInfo
from podstatus.kube.objects.containers import ResourceClaim, ResourceRequirements
from podstatus.kube.objects.pod import PodUID
from podstatus.status.ports import OutboxEntry
from podstatus.testing.builders import ended, make_status

ROOT = Path(__file__).parents[2]
CONTAINERS = 40
"""Enough for a file of a few kilobytes, which takes more than one write."""
NOBODY = 65534


def alone(function: Callable[..., None], *arguments: object) -> str:
    """Run a function of this module in a new process and return its output."""
    call = f"from {__name__} import *; {function.__name__}{arguments!r}"
    command = [sys.executable, "-c", call]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def numbered(number: int) -> PodResourceInfo:
    """Return a pod in which every container has the same number."""
    resources = ResourceRequirements(claims=(ResourceClaim(name=str(number)),))
    return PodResourceInfo(container_resources={f"c{i}": resources for i in range(CONTAINERS)})


def number_in(folder: str) -> int:
    """Return the number that a new state restores in all places; 0 if there is none."""
    info = FileState(folder).allocated.pod_resource_info("u")
    if info is None:
        return 0
    (resources,) = set(info.container_resources.values())
    (claim,) = resources.claims or ()
    assert info == numbered(int(claim.name)), info
    return int(claim.name)


def files(folder: str) -> list[str]:
    """Return the names of all files in a directory, including hidden ones."""
    return [path.name for path in Path(folder).iterdir()]


# kill -9


def kill_writers(folder: str, kills: int, seed: int) -> None:
    """Kill a writer repeatedly; no finished write may be lost, none may be partial."""
    moments = random.Random(seed)
    halfway = 0
    for _ in range(kills):
        before = number_in(folder)
        acknowledged = _killed(partial(_write_numbers, folder, before), moments)
        halfway += any(name.endswith(".podstatus") for name in files(folder))
        number = number_in(folder)
        assert number in (acknowledged, acknowledged + 1), (before, acknowledged, number)
        assert files(folder) == ["allocated_pods_state"], files(folder)
    sys.stdout.write(str(halfway))


def _killed(work: Callable[[int], None], moments: random.Random) -> int:
    """Kill a process that writes numbers at a random time; return the last finished number."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        work(writer)
    os.close(writer)
    # Wait for the first number, which takes longest, then a random time within the next few.
    acknowledged = os.read(reader, 8)
    select.select([], [], [], moments.uniform(0, 0.01))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while more := os.read(reader, 1 << 16):
        acknowledged += more
    os.close(reader)
    return int(struct.unpack("q", acknowledged[-8:])[0])


def _write_numbers(folder: str, number: int, acknowledge: int) -> None:
    state = FileState(folder)
    while True:
        number += 1
        state.allocated.set_pod_resource_info("u", numbered(number))
        os.write(acknowledge, struct.pack("q", number))


# kill -9, with an outbox


def undelivered(number: int) -> OutboxEntry:
    """Return a status in which every container has the same number."""
    containers = [ended(f"c{i}", number) for i in range(CONTAINERS)]
    return OutboxEntry(
        uid=PodUID("u"), namespace="n", name="p", status=make_status("Failed", *containers)
    )


def last_in(folder: str) -> int:
    """Return the number that a new outbox loads in all places; 0 if there is none."""
    loaded = FileOutbox(folder, OutboxEntry).load()
    if not loaded:
        return 0
    (entry,) = loaded
    (first, *_) = entry.status.container_statuses or ()
    assert first.state.terminated is not None
    number = first.state.terminated.exit_code
    assert entry == undelivered(number), entry
    return number


def kill_keepers(folder: str, kills: int, seed: int) -> None:
    """Kill a process that stores and drops; neither a stored status nor a removal is lost."""
    moments = random.Random(seed)
    halfway = 0
    last = 0
    for _ in range(kills):
        acknowledged = _killed(partial(_keep_numbers, folder, last), moments)
        halfway += any(name.endswith(".podstatus") for name in files(folder))
        number = last_in(folder)
        # The next step may be done already: an odd number is stored, an even one drops it.
        expected = {acknowledged, 0} if acknowledged % 2 else {0, acknowledged + 1}
        assert number in expected, (acknowledged, number)
        assert files(folder) == (["u.json"] if number else []), files(folder)
        last = acknowledged + acknowledged % 2
    sys.stdout.write(str(halfway))


def _keep_numbers(folder: str, number: int, acknowledge: int) -> None:
    """Store odd numbers; an even number means that the one before it was dropped."""
    outbox = FileOutbox(folder, OutboxEntry)
    while True:
        number += 1
        if number % 2:
            outbox.store(undelivered(number))
        else:
            outbox.drop(PodUID("u"))
        os.write(acknowledge, struct.pack("q", number))


# A disk that rejects writes


def fill_disk(folder: str) -> None:
    """A write to a full disk has no effect; later writes succeed again."""
    state = FileState(folder)
    state.allocated.set_pod_resource_info("u", numbered(1))
    _, hard_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    for limit in (0, 1, 1000):
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard_limit))
        _fails_to_change(state, folder, "File too large")
    resource.setrlimit(resource.RLIMIT_FSIZE, (hard_limit, hard_limit))
    state.allocated.set_pod_resource_info("u", numbered(2))
    assert number_in(folder) == 2


def use_read_only_folder(folder: str) -> None:
    """A write to a read-only directory has no effect; its files can be read."""
    FileState(folder).allocated.set_pod_resource_info("u", numbered(1))
    Path(folder, "allocated_pods_state").chmod(0o644)
    Path(folder).chmod(0o555)
    _become_nobody()
    state = FileState(folder)
    log = io.StringIO()
    logging.getLogger("podstatus").addHandler(logging.StreamHandler(log))
    state.restore()
    assert log.getvalue() == f"checkpoint directory is not writable: directory={folder}\n"
    _fails_to_change(state, folder, "Permission denied")


def use_secret_file(folder: str) -> None:
    """A file without read permission is reported and not overwritten."""
    FileState(folder).allocated.set_pod_resource_info("u", numbered(1))
    Path(folder, "allocated_pods_state").chmod(0)
    _become_nobody()
    state = FileState(folder)
    for attempt in (state.restore, lambda: state.set_resize_status("u", "Deferred")):
        with pytest.raises(
            UnreadableCheckpointError, match="denied; make it a regular file that this user"
        ):
            attempt()
    assert files(folder) == ["allocated_pods_state"]


def _fails_to_change(state: FileState, folder: str, why: str) -> None:
    before = state.allocations()
    text = Path(folder, "allocated_pods_state").read_bytes()
    with pytest.raises(CheckpointWriteError) as raised:
        state.allocated.set_pod_resource_info("u", numbered(7))
    message = f"{folder}/allocated_pods_state: {why}; nothing was changed"
    assert message in str(raised.value), raised.value
    assert not raised.value.replaced
    assert state.allocations() is before
    assert Path(folder, "allocated_pods_state").read_bytes() == text
    assert files(folder) == ["allocated_pods_state"]


def _become_nobody() -> None:
    """Drop root, for which permissions do not apply."""
    if os.geteuid() == 0:
        os.setuid(NOBODY)
