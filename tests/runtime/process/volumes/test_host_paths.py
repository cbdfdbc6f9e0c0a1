"""Host paths: no procfs, no files of the agent, and no link that another pod created."""

import asyncio
import contextlib
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.volumes import HostPathVolumeSource
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.launch_preparer import ContainerPreparer
from podstatus.runtime.process.paths.open_path import LinkError, open_path
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.records.models import PreparedCommand
from podstatus.runtime.process.service_links import NoServices
from podstatus.runtime.process.shim.bubblewrap import open_host_paths
from podstatus.runtime.process.shim.start import StartFailedError as NotStartedError
from podstatus.runtime.process.volumes.host_paths import prepare_host_path
from podstatus.testing.clock import FakeClock
from tests.runtime.process.conftest import TrialProcess, Trials
from tests.runtime.process.sandbox_trial import handed_files, run, run_with
from tests.support.processes.process_pods import pod_of
from tests.support.processes.process_runtime import BUBBLEWRAP, NoObjects, need_bubblewrap

SECRET = "psst-of-the-host"  # noqa: S105 - a marker
_EXCHANGE, _HERE = 2, -100
need_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounts need root")


def refusal(path: str | Path, *, read_only: bool = True, secret: tuple[str, ...] = ()) -> str:
    with pytest.raises(CannotStartError) as refused:
        prepare_host_path(HostPathVolumeSource(path=str(path)), secret, read_only=read_only)
    assert refused.value.reason == "CreateContainerConfigError"
    return refused.value.message


def open_files() -> list[Path]:
    return list(Path("/proc/self/fd").iterdir())


@pytest.mark.parametrize("path", ["/", "/proc", "/proc/", "//proc/.", "/proc/1", "/proc/self/root"])
@pytest.mark.parametrize("read_only", [True, False])
def test_a_path_that_holds_a_procfs_is_refused(path: str, *, read_only: bool) -> None:
    message = refusal(path, read_only=read_only)
    assert "is a procfs" in message or "is a symbolic link" in message


@pytest.mark.parametrize("path", ["/sys", "/sys/fs/cgroup", "/sys/kernel"])
def test_file_systems_of_the_kernel_are_for_reading(path: str) -> None:
    assert "set readOnly: true" in refusal(path, read_only=False)
    found = prepare_host_path(HostPathVolumeSource(path=path), (), read_only=True)
    assert found.path == path


def test_nothing_is_made_in_a_file_system_of_the_kernel() -> None:
    message = refusal("/sys/kernel/podstatus-test/x")
    assert "set readOnly: true" in message
    assert not Path("/sys/kernel/podstatus-test").exists()


@pytest.mark.parametrize("path", ["/dev/null", "/dev/zero"])
def test_devices_are_given_to_no_container(path: str) -> None:
    assert "no access to devices" in refusal(path)


def test_what_is_the_agents_own_is_refused_under_any_name(tmp_path: Path) -> None:
    own = tmp_path / "own"
    (own / "in").mkdir(parents=True)
    (own / "key").touch()
    (tmp_path / "hard").hardlink_to(own / "key")
    secret = str(own), str(own / "key")
    for path in (own, f"{tmp_path}//own/./in", own / "in/new", own / "key", tmp_path / "hard"):
        assert "it belongs to the agent" in refusal(path, secret=secret)
    assert not (own / "in/new").exists()


def test_what_holds_the_agents_own_is_for_reading(tmp_path: Path) -> None:
    """With write access, another folder could be put in its place."""
    (tmp_path / "a/own").mkdir(parents=True)
    secret = (str(tmp_path / "a/own"),)
    assert "mount it readOnly" in refusal(tmp_path, read_only=False, secret=secret)
    source = HostPathVolumeSource(path=str(tmp_path))
    assert prepare_host_path(source, secret, read_only=True).path == str(tmp_path)


def test_a_link_is_followed_where_only_root_can_put_one(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    for path in ("link", "link/in"):
        with pytest.raises(LinkError, match="link is a symbolic link"):
            open_path(str(tmp_path / path))
    for path in filter(os.path.islink, ("/bin", "/lib", "/var/run", "/etc/localtime")):
        with open_path(path) as opened:
            assert opened.path == os.path.realpath(path)


def test_no_file_stays_open_whatever_is_found(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/")
    (tmp_path / "file").touch()
    before = len(open_files())
    for path in ("link", "link/a", "file", "file/a", "none/a", "new"):
        with contextlib.suppress(CannotStartError):
            source = HostPathVolumeSource(path=str(tmp_path / path))
            prepare_host_path(source, (), read_only=False)
    assert len(open_files()) == before


class Race:
    """A host folder that a pod mounts, and a link to a secret that may replace it."""

    def __init__(self, top: Path, root: Path) -> None:
        self.target, self._link = top / "shared/data", top / "shared/link"
        secret = top / "secret"
        for folder in (self.target, secret):
            folder.mkdir(parents=True)
        (self.target / "what").write_text("shared")
        (secret / "what").write_text(SECRET)
        self._link.symlink_to(secret)
        self._preparer = ContainerPreparer(
            root,
            bubblewrap=BUBBLEWRAP,
            objects=NoObjects(),
            services=NoServices(),
            host_ips=lambda: (),
            allocatable=dict,
            hidden=[],
            clock=FakeClock(),
        )
        self._root = root

    def swap(self) -> None:
        """Exchange the link and the folder atomically."""
        names = os.fsencode(self.target), os.fsencode(self._link)
        libc = ctypes.CDLL(None, use_errno=True)
        assert libc.renameat2(_HERE, names[0], _HERE, names[1], _EXCHANGE) == 0

    def command(self) -> PreparedCommand:
        pod = _pod_with(str(self.target))
        place = PodFolder(self._root, pod.uid).container("1")
        (only,) = pod.spec.containers or ()
        return asyncio.run(self._preparer.prepare_container(pod, only, place))


def _pod_with(path: str) -> Pod:
    container = {
        "command": ["cat", "/host/what"],
        "volumeMounts": [{"name": "h", "mountPath": "/host"}],
    }
    return pod_of(container, volumes=[{"name": "h", "hostPath": {"path": path}}])


@pytest.fixture
def race(tmp_path: Path) -> Race:
    return Race(tmp_path, tmp_path / "root")


@need_bubblewrap
def test_a_folder_that_is_swapped_before_the_check_is_refused(race: Race) -> None:
    assert run(race.command()).stdout == "shared"
    race.swap()
    with pytest.raises(CannotStartError, match="is a symbolic link, which another pod may change"):
        race.command()


@need_bubblewrap
def test_a_folder_that_is_swapped_after_the_check_is_not_mounted(race: Race) -> None:
    command = race.command()
    race.swap()
    with pytest.raises(NotStartedError, match="replaced while the container started"):
        run(command)


@need_bubblewrap
def test_a_folder_above_it_that_is_swapped_is_not_followed(race: Race, tmp_path: Path) -> None:
    command = race.command()
    (tmp_path / "shared").rename(tmp_path / "moved")
    (tmp_path / "shared").symlink_to("moved")
    with pytest.raises(NotStartedError, match=r'hostPath ".*": not a directory'):
        run(command)


@need_bubblewrap
def test_a_folder_that_is_swapped_right_before_the_mount_is_not_mounted(race: Race) -> None:
    command = race.command()
    handed = handed_files(command)
    race.swap()
    done = run_with(command, handed)
    assert SECRET not in done.stdout + done.stderr
    assert done.stdout in ("", "shared")


@pytest.mark.slow
@need_bubblewrap
def test_no_start_among_many_mounts_what_a_link_leads_to(race: Race) -> None:
    script = (
        "import ctypes,sys\nlibc=ctypes.CDLL(None)\n"
        "a,b=(name.encode() for name in sys.argv[1:])\n"
        f"while True: libc.renameat2({_HERE},a,{_HERE},b,{_EXCHANGE})"
    )
    names = str(race.target), str(race.target.with_name("link"))
    with subprocess.Popen([sys.executable, "-c", script, *names]) as swapper:
        try:
            seen = [_tried(race) for _ in range(150)]
        finally:
            swapper.kill()
    assert SECRET not in "".join(seen)
    assert "shared" in seen, "none was ever started"


def _tried(race: Race) -> str:
    try:
        done = run(race.command())
    except (CannotStartError, NotStartedError) as refused:
        return str(refused)
    return done.stdout


def test_what_the_shim_opens_is_the_same_file_or_none(tmp_path: Path) -> None:
    status = tmp_path.stat()
    argument = {"path": str(tmp_path), "device": status.st_dev, "inode": status.st_ino}
    (opened,) = open_host_paths([argument])
    assert os.path.samestat(os.fstat(opened), status)
    os.close(opened)
    before = len(open_files())
    for wrong in ({"inode": 1}, {"path": f"{tmp_path}/none"}, {"path": "/proc/self/root"}):
        with pytest.raises(NotStartedError, match="hostPath"):
            open_host_paths([argument, {**argument, **wrong}])
    assert len(open_files()) == before


class Mounts:
    """Trials with more mounts, in a separate mount namespace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "agent"
        (self.root / "pods").mkdir(parents=True)
        (self.root / "token").write_text(SECRET)

    def run(self, mounted: str, *containers: dict[str, Any], **spec: Any) -> list[dict[str, Any]]:
        script = f'set -e; cd {self.folder}; {mounted}; exec "$@"'
        unshare = ("unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh")
        with contextlib.closing(TrialProcess(0, *unshare, sys.executable)) as process:
            return Trials(self.root, process).run(*containers, **spec)

    def ask(self, mounted: str, *paths: str, script: str = "true") -> list[dict[str, Any]]:
        """Run pods that mount these paths of the folder read-only; return the results."""
        names = [f"v{number}" for number, _ in enumerate(paths)]
        containers = [
            {
                "command": ["sh", "-c", script],
                "volumeMounts": [{"name": name, "mountPath": "/host", "readOnly": True}],
            }
            for name in names
        ]
        volumes = [
            {"name": name, "hostPath": {"path": f"{self.folder}/{path}"}}
            for name, path in zip(names, paths, strict=True)
        ]
        return self.run(mounted, *containers, volumes=volumes)


@pytest.fixture
def mounts() -> Iterator[Mounts]:
    folder = Path(tempfile.mkdtemp(prefix="podstatus-", dir="/var/lib"))
    yield Mounts(folder)
    shutil.rmtree(folder)


@need_root
@need_bubblewrap
def test_a_procfs_at_an_odd_place_is_refused_and_not_seen(mounts: Mounts) -> None:
    mounted = "mkdir -p a/b odd file; mount -t proc x a/b; mount --bind /proc/sys odd"
    results = mounts.ask(mounted, "a", "a/b", "a/b/1", "odd", "odd/kernel")
    assert all("is a procfs" in result["refused"] for result in results), results
    (result,) = mounts.run(
        "mount -t proc x a/b; mount --bind /proc/sys odd",
        {"command": ["sh", "-c", f"ls -A {mounts.folder}/a/b {mounts.folder}/odd"]},
    )
    assert result["out"].split() == [f"{mounts.folder}/a/b:", f"{mounts.folder}/odd:"]


@need_root
@need_bubblewrap
def test_the_agents_folder_is_hidden_wherever_it_is_mounted(mounts: Mounts) -> None:
    mounted = (
        "mkdir -p whole part above; touch key; mount --bind agent whole;"
        "mount --bind agent/pods part; mount --rbind . above; mount --bind agent/token key"
    )
    own = mounts.ask(mounted, *("agent", "whole", "part", "above/agent", "whole/pods", "key"))
    assert all("it belongs to the agent" in result["refused"] for result in own), own
    script = (
        f"grep -rs {SECRET} /host {mounts.folder}; "
        f"ls -A {mounts.folder}/agent {mounts.folder}/whole /host/agent | grep -v :"
    )
    holding = mounts.ask(mounted, "", "above", script=script)
    assert [result["out"].strip() for result in holding] == ["", ""], holding


@need_root
@need_bubblewrap
def test_no_file_of_ours_stays_open_in_a_container(mounts: Mounts) -> None:
    (result,) = mounts.ask("mkdir -p x", "x", script="ls /proc/self/fd")
    assert len(result["out"].split()) == 4, "0, 1, 2, and the folder that is listed"
