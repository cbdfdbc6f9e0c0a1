"""Files of a hostile container harm neither the agent nor other pods."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.processes.agent_process import Document, container, get_plain, has_phase, until
from tests.support.processes.process_node import (
    ISOLATIONS,
    ProcessNode,
    command_pod,
    need_root,
    process_node,
    python_pod,
)
from tests.support.processes.process_runtime import NOBODY

pytestmark = pytest.mark.slow

LOG_BYTES, LOG_FILES = 2**20, 2
_ENDED = ("Succeeded", "Failed")
DEEP = """
import os
os.chdir("/tmp")
os.mkdir("deep")
os.chdir("deep")
for number in range(%d):
    os.mkdir("d")
    os.chdir("d")
open("f", "w").close()
print("made", flush=True)
"""


@pytest.fixture(scope="module", params=ISOLATIONS)
def node(request: pytest.FixtureRequest) -> Iterator[ProcessNode]:
    limits = ("--container-log-max-size", "1Mi", "--container-log-max-files", str(LOG_FILES))
    with process_node(*limits, isolation=request.param) as node:
        node.start_ready()
        yield node


@pytest.fixture(scope="module")
def isolated() -> Iterator[ProcessNode]:
    with process_node(isolation="bubblewrap") as node:
        node.start_ready()
        yield node


@pytest.fixture(scope="module")
def plain() -> Iterator[ProcessNode]:
    """Without isolation, as root; its containers are ordinary users."""
    need_root()
    with process_node(isolation="none") as node:
        node.start_ready()
        yield node


@pytest.fixture
def scratch() -> Iterator[Path]:
    """A world-readable directory below /tmp."""
    folder = Path(tempfile.mkdtemp(prefix="podstatus-", dir="/tmp"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def ended(node: ProcessNode, name: str) -> Document:
    return node.cluster.wait_for(name, lambda pod: pod["status"].get("phase") in _ENDED)


def remove(node: ProcessNode, name: str) -> None:
    """Delete a pod; nothing of it is left on the disk."""
    folder = node.pod_folder(name)
    node.cluster.delete(name)
    node.cluster.wait_gone(name)
    until(lambda: not folder.exists(), node.log)
    removed = node.root_dir / "runtime/removed"
    until(lambda: not list(removed.iterdir()), lambda: (list(removed.iterdir()), node.log()))


def is_well(node: ProcessNode) -> bool:
    """Whether the agent still does what it is there for."""
    assert node.process is not None
    assert node.process.poll() is None
    code, said = get_plain(f"{node.wait_serving()['health']}/healthz")
    return code == 200 and "Traceback" not in node.log() and bool(said)


def test_endless_output_fills_no_disk_and_delays_no_other_pod(node: ProcessNode) -> None:
    node.cluster.create(command_pod("loud", "sh", "-c", "yes 'a line of some length'"))
    node.cluster.wait_ready("loud")
    places = node.pod_folder("loud")
    until(lambda: len(list(places.glob("containers/*/0.log*"))) > 1)
    node.cluster.create(python_pod("quiet", "print(1)"))
    assert node.result("quiet") == 1
    for _ in range(20):
        sizes = 0
        for path in places.glob("containers/*/0.log*"):
            with suppress(FileNotFoundError):  # it was moved on meanwhile
                sizes += path.stat().st_size
        assert sizes <= (LOG_FILES + 1) * LOG_BYTES
    remove(node, "loud")
    assert is_well(node)


def test_the_end_of_an_endless_termination_message_is_reported(isolated: ProcessNode) -> None:
    script = (
        "yes abcdefg | head -c 30000000 > /dev/termination-log; printf END >> /dev/termination-log"
    )
    isolated.cluster.create(command_pod("wordy", "sh", "-c", script, restartPolicy="Never"))
    message = container(ended(isolated, "wordy"))["state"]["terminated"]["message"]
    assert message.endswith("END")
    assert len(message) <= 4096
    remove(isolated, "wordy")


def test_last_words_cannot_be_replaced_by_a_link(isolated: ProcessNode) -> None:
    token = isolated.root_dir / "apiserver/token"
    script = (
        f"rm -f /dev/termination-log; mv /tmp /tmp2; ln -sf {token} /dev/termination-log; exit 3"
    )
    isolated.cluster.create(command_pod("linked", "sh", "-c", script, restartPolicy="Never"))
    pod = ended(isolated, "linked")
    assert token.read_text().strip() not in str(pod)
    (place,) = isolated.pod_folder("linked").glob("containers/*")
    assert not (place / "message").is_symlink()


@pytest.mark.parametrize("kind", ["link", "hard link", "pipe", "folder", "device"])
def test_the_agent_reads_nothing_through_last_words_that_were_replaced(
    plain: ProcessNode, scratch: Path, kind: str
) -> None:
    """The agent is root, the container `nobody`: the agent must not leak files to it."""
    token = plain.root_dir / "apiserver/token"
    words = scratch / "words"
    made = {
        "link": f"ln -s {token} {words}",
        "hard link": f"ln {token} {words}",
        "pipe": f"mkfifo {words}",
        "folder": f"mkdir {words}",
        "device": f"ln -s /dev/zero {words}",
    }
    name = f"words-{kind.replace(' ', '-')}"
    context = {"runAsUser": NOBODY, "runAsGroup": NOBODY}
    own = {"terminationMessagePath": str(words), "securityContext": context}
    script = f"rm -f {words}; {made[kind]}; exit 3"
    pod = command_pod(name, "sh", "-c", script, container=own, restartPolicy="Never")
    plain.cluster.create(pod)
    found = ended(plain, name)
    assert container(found)["state"]["terminated"]["exitCode"] == 3
    assert token.read_text().strip() not in str(found)
    assert token.read_text().strip() not in str(plain.cluster.events())
    remove(plain, name)
    assert token.exists()
    assert is_well(plain)


def test_what_links_lead_to_is_neither_changed_nor_removed(
    node: ProcessNode, scratch: Path
) -> None:
    kept = scratch / "kept"
    kept.mkdir()
    (kept / "file").write_text("mine")
    (kept / "file").chmod(0o600)
    before = (kept / "file").stat(), kept.stat()
    own = "/tmp" if "bubblewrap" in node.words else str(scratch / "volume")  # noqa: S108
    mount = {"name": "v", "mountPath": f"{own}/v" if own == "/tmp" else own}  # noqa: S108
    script = (
        f"cd {mount['mountPath']}; ln -s {kept} a; ln -s {kept}/file b; mkdir c; ln -s {kept} c/d"
    )
    pod = command_pod(
        "links",
        *("sh", "-c", f"{script}; ln -s {kept} .podstatus-pod.new; chmod 0 c; echo '1'"),
        container={"volumeMounts": [mount]},
        volumes=[{"name": "v", "emptyDir": {}}],
        restartPolicy="Never",
    )
    node.cluster.create(pod)
    assert node.result("links") == 1
    remove(node, "links")
    after = (kept / "file").stat(), kept.stat()
    assert [(it.st_mode, it.st_uid, it.st_mtime_ns) for it in after] == [
        (it.st_mode, it.st_uid, it.st_mtime_ns) for it in before
    ]
    assert (kept / "file").read_text() == "mine"
    if own != "/tmp":  # noqa: S108
        assert not Path(own).exists()


@pytest.mark.parametrize("depth", [100, 3000])
def test_folders_however_deep_are_removed(isolated: ProcessNode, depth: int) -> None:
    isolated.cluster.create(python_pod(f"deep-{depth}", DEEP % depth))
    isolated.wait_for_log(f"deep-{depth}", "made")
    ended(isolated, f"deep-{depth}")
    remove(isolated, f"deep-{depth}")
    assert is_well(isolated)


def test_many_files_with_odd_names_are_removed(isolated: ProcessNode) -> None:
    script = """
import os
os.chdir("/tmp")
for number in range(20000):
    open(b"\\xff\\n-rf %d" % number, "w").close()
os.mkdir("closed"); open("closed/f", "w").close(); os.chmod("closed", 0)
os.mkfifo("pipe"); os.symlink("/proc/self", "link")
print(1)
"""
    isolated.cluster.create(python_pod("many", script))
    assert isolated.result("many") == 1
    remove(isolated, "many")
    assert is_well(isolated)


def test_who_breaks_its_own_folders_breaks_nothing_else(isolated: ProcessNode) -> None:
    script = """
rm -rf /tmp/* /tmp; mv /data /gone; rm -rf /data/* /data; chmod 000 /tmp /data
(umount /tmp; mount --move /data /tmp) 2>/dev/null
echo "[1]"; exit 0
"""
    mount = {"name": "v", "mountPath": "/data"}
    pod = command_pod(
        "broken",
        *("sh", "-c", script),
        container={"volumeMounts": [mount]},
        volumes=[{"name": "v", "emptyDir": {}}],
        restartPolicy="Never",
    )
    isolated.cluster.create(pod)
    ended(isolated, "broken")
    again = {**pod, "metadata": {"name": "broken-again"}}
    isolated.cluster.create(again)
    isolated.cluster.wait_for("broken-again", has_phase("Succeeded"))
    remove(isolated, "broken")
    remove(isolated, "broken-again")
    assert is_well(isolated)
    assert os.access("/tmp", os.W_OK)  # noqa: S108 - the host's own
