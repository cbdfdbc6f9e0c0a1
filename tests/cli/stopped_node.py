"""The files of a node that was stopped, while the containers of a pod run on."""

import os
from pathlib import Path

import msgspec

from podstatus.agent.daemon.root_dir import RootDir
from podstatus.agent.daemon.server_identity import SERVER_FILE, ServerIdentity
from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.records.layout import pods_folder
from podstatus.runtime.process.records.models import PodRecord, StartRecord
from podstatus.runtime.process.shim.records import POD, STARTED
from podstatus.runtime.process.state.process_identity import read_identity

EXTERNAL = ServerIdentity(address="https://far")


def stopped_node(
    root_dir: Path, server: ServerIdentity | None = None, *, pid: int | None = None
) -> None:
    """Write the records of the pod default/web, with a process as its container.

    `server`: the API server of the node; None: the embedded one. `pid`: None for this process.
    """
    with RootDir(root_dir) as root:
        identity = server or ServerIdentity(embedded=True)
        root.write(SERVER_FILE, msgspec.json.encode(identity))
    process = read_identity(pid or os.getpid())
    assert process is not None
    folder = pods_folder(root_dir / "runtime") / "u1"
    container = folder / "containers" / "c1"
    container.mkdir(parents=True)
    pod = PodRecord(
        uid=PodUID("u1"),
        namespace="default",
        name="web",
        sandbox_id="s1",
        sandbox_attempt=0,
        created_at=0,
    )
    started = StartRecord(process=process, monitor=process, started_at=0)
    (folder / POD).write_bytes(msgspec.json.encode(pod))
    (container / STARTED).write_bytes(msgspec.json.encode(started))
