"""Preparation of pods and containers, with and without isolation; no command is run."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podstatus.kube.api_errors import DeniedError, UnavailableError
from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.cluster import ConfigMap
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.service import Service
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.paths.safe_paths import remove_tree
from podstatus.runtime.process.records.layout import PodFolder
from podstatus.runtime.process.sandbox.isolation import Bubblewrap
from podstatus.runtime.process.volumes.unsandboxed_files import OWNER_MARK
from tests.runtime.process.preparer_scene import BWRAP, Setting
from tests.support.processes.process_pods import UID, pod_of

NOWHERE = "/tmp/podstatus-test-nowhere"


@pytest.fixture
def plain(tmp_path: Path) -> Setting:
    return Setting(tmp_path / "root", None)


@pytest.fixture
def isolated(tmp_path: Path) -> Setting:
    return Setting(tmp_path / "root", BWRAP)


@pytest.fixture
def name() -> Iterator[str]:
    """A path below /tmp that does not exist, and is removed afterwards."""
    path = f"/tmp/podstatus-test-{os.getpid()}"
    yield path
    if Path(path).is_symlink() or Path(path).is_file():
        Path(path).unlink()
    remove_tree(Path(path))


WEB = from_document(
    {
        "metadata": {"name": "web", "namespace": "ns"},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]},
    },
    Service,
)


@pytest.mark.parametrize("bubblewrap", [None, BWRAP])
def test_services_are_variables_for_command_and_arguments(
    tmp_path: Path, bubblewrap: Bubblewrap | None
) -> None:
    container = {
        "command": ["curl", "$(WEB_PORT)"],
        "args": ["$(URL)"],
        "env": [{"name": "URL", "value": "http://$(WEB_SERVICE_HOST)"}],
    }
    command = Setting(tmp_path / "root", bubblewrap, (WEB,)).start(pod_of(container))
    assert command.argv[-3:] == ("curl", "tcp://10.0.0.1:80", "http://10.0.0.1")
    assert command.env["WEB_SERVICE_HOST"] == "10.0.0.1"
    assert command.env["WEB_PORT_80_TCP_ADDR"] == "10.0.0.1"


def with_mount(path: str, volume: dict[str, Any] | None = None, **mount: Any) -> Pod:
    mounts = [{"name": "v", "mountPath": path, **mount}]
    return pod_of({"volumeMounts": mounts}, volumes=[{"name": "v", **(volume or {})}])


def test_a_plain_command_is_expanded_and_nothing_of_ours_is_in_it(plain: Setting) -> None:
    container = {
        "command": ["echo", "$(A)", "$(HOME)"],
        "args": ["$$(A)", "'\n"],
        "env": [{"name": "A", "value": "x y"}],
        "workingDir": "/usr",
    }
    command = plain.start(pod_of(container))
    assert command.argv == ("echo", "x y", "$(HOME)", "$(A)", "'\n")
    assert set(command.env) == {"PATH", "HOME", "HOSTNAME", "A"}
    assert (command.cwd, command.bubblewrap, command.message_path) == ("/usr", None, "")


@pytest.mark.parametrize("bubblewrap", [None, BWRAP])
def test_a_container_with_a_terminal_knows_its_type(
    tmp_path: Path, bubblewrap: Bubblewrap | None
) -> None:
    command = Setting(tmp_path / "root", bubblewrap).start(pod_of({"tty": True}))
    assert command.env["TERM"] == "xterm"


def test_arguments_alone_are_a_command(plain: Setting) -> None:
    assert plain.start(pod_of({"command": None, "args": ["x"]})).argv == ("x",)


def test_a_word_larger_than_a_process_can_be_given_is_refused(plain: Setting) -> None:
    env = [{"name": "A", "value": "x" * 1000}]
    refused = plain.refusal(pod_of({"command": ["echo", "$(A)" * 1000], "env": env}))
    assert refused.reason == "CreateContainerConfigError"
    assert refused.message.startswith("command[1]: has more than 131072 bytes")


@pytest.mark.parametrize(
    ("container", "part"),
    [
        (
            {"env": [{"name": f"A{n}", "value": "x"} for n in range(10_000)]},
            "10000 environment variables",
        ),
        (
            {"env": [{"name": f"A{n}", "value": "x"} for n in range(2_999)]},
            "3002 environment variables, 2 mounts",
        ),
        ({"command": ["echo", *map(str, range(9_000))]}, "9001 command arguments"),
        (
            {"volumeMounts": [{"name": "v", "mountPath": f"/m/{n}"} for n in range(4_000)]},
            "4000 volumeMounts",
        ),
    ],
)
def test_more_than_bubblewrap_takes_is_refused(
    isolated: Setting, container: dict[str, Any], part: str
) -> None:
    refused = isolated.refusal(pod_of(container, volumes=[{"name": "v", "emptyDir": {}}]))
    assert refused.reason == "CreateContainerConfigError"
    assert part in refused.message


def test_an_image_has_no_command(plain: Setting) -> None:
    refused = plain.refusal(pod_of({"command": None, "name": "nginx", "image": "nginx:1 x"}))
    assert refused.reason == "CreateContainerError"
    assert refused.message == (
        'the process runtime has no images: container "nginx" needs command or args that name '
        "a program on this machine; delete the pod and set them, e.g. "
        "kubectl run nginx --image='nginx:1 x' --command -- "
        "sh -c 'trap exit TERM; sleep infinity & wait'"
    )


def test_an_error_of_the_api_server_is_reported(plain: Setting) -> None:
    plain.objects.error = DeniedError("secrets is forbidden")
    refused = plain.refusal(pod_of({"envFrom": [{"secretRef": {"name": "s"}}]}))
    assert (refused.reason, refused.message) == (
        "CreateContainerConfigError",
        "secrets is forbidden",
    )
    assert refused.retry_soon


def test_a_missing_object_is_tried_again_soon_but_a_missing_key_is_not(plain: Setting) -> None:
    source = {"configMapKeyRef": {"name": "c", "key": "k"}}
    pod = pod_of({"env": [{"name": "A", "valueFrom": source}]})
    assert plain.refusal(pod).retry_soon
    plain.objects.put_config_map("c", other="x")
    assert not plain.refusal(pod).retry_soon


def test_a_folder_below_tmp_is_made_marked_and_removed(plain: Setting, name: str) -> None:
    pod = with_mount(name)
    plain.start(pod)
    assert (Path(name) / OWNER_MARK).read_text() == UID
    assert stat.S_IMODE(Path(name).stat().st_mode) == 0o777
    (Path(name) / "kept").touch()
    plain.start(pod, "2")
    assert (Path(name) / "kept").exists()
    plain.remove(pod)
    assert not Path(name).exists()


def test_a_foreign_folder_is_neither_used_nor_removed(plain: Setting, name: str) -> None:
    Path(name).mkdir()
    pod = with_mount(name)
    refused = plain.refusal(pod)
    assert f"{name} exists and is not owned by the pod" in refused.message
    plain.remove(pod)
    assert Path(name).is_dir()


def test_a_folder_with_a_new_owner_is_not_removed(plain: Setting, name: str) -> None:
    pod = with_mount(name)
    plain.start(pod)
    (Path(name) / OWNER_MARK).write_text("another pod")
    plain.remove(pod)
    assert Path(name).is_dir()


def test_a_link_in_place_of_a_folder_is_not_followed(
    plain: Setting, name: str, tmp_path: Path
) -> None:
    pod = with_mount(name)
    plain.start(pod)
    remove_tree(Path(name))
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / OWNER_MARK).write_text(UID)
    Path(name).symlink_to(victim)
    assert "is not owned by the pod" in plain.refusal(pod).message
    plain.remove(pod)
    assert (victim / OWNER_MARK).exists()


def test_links_inside_of_a_folder_are_removed_and_not_followed(
    plain: Setting, name: str, tmp_path: Path
) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").touch()
    pod = with_mount(name)
    plain.start(pod)
    (Path(name) / "evil").symlink_to(victim)
    plain.remove(pod)
    assert not Path(name).exists()
    assert (victim / "file").exists()


def test_an_agent_that_died_while_it_made_a_folder_goes_on(plain: Setting, name: str) -> None:
    pod = with_mount(name)
    plain.start(pod)
    (Path(name) / OWNER_MARK).unlink()
    plain.start(pod)
    assert (Path(name) / OWNER_MARK).read_text() == UID


@pytest.mark.parametrize(
    ("path", "volume", "more", "part"),
    [
        ("/data", {}, {}, "mount it below /tmp"),
        ("/tmp", {}, {}, "mount it below /tmp"),
        (NOWHERE, {"hostPath": {"path": "/usr"}}, {}, "(hostPath) cannot be mounted"),
        (NOWHERE, {"configMap": {"name": "c"}}, {}, "(configMap) cannot be mounted"),
        (NOWHERE, {}, {"subPath": "a"}, "subPath of volume"),
        (NOWHERE, {}, {"readOnly": True}, "readOnly of volume"),
    ],
)
def test_other_mounts_take_bubblewrap(
    plain: Setting, path: str, volume: dict[str, Any], more: dict[str, Any], part: str
) -> None:
    refused = plain.refusal(with_mount(path, volume, **more))
    assert refused.reason == "CreateContainerConfigError"
    assert part in refused.message
    assert "install bubblewrap" in refused.message
    assert not Path(NOWHERE).exists()


def test_a_token_that_is_not_needed_can_be_disabled(plain: Setting) -> None:
    source = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    pod = with_mount("/var/run/secrets/kubernetes.io/serviceaccount", source)
    assert "automountServiceAccountToken: false" in plain.refusal(pod).message


def test_one_volume_is_one_folder(plain: Setting, name: str) -> None:
    first = {"name": "a", "command": ["x"], "volumeMounts": [{"name": "v", "mountPath": name}]}
    second = {"name": "b", "volumeMounts": [{"name": "v", "mountPath": f"{name}2"}]}
    pod = pod_of(None, containers=[first, second], volumes=[{"name": "v"}])
    assert "at one path" in plain.refusal(pod).message


def test_a_message_below_tmp_is_a_new_file_each_time(plain: Setting, name: str) -> None:
    pod = pod_of({"terminationMessagePath": name})
    assert plain.start(pod).message_path == name
    Path(name).write_text("old words")
    plain.start(pod, "2")
    assert Path(name).read_text() == ""
    plain.remove(pod)
    assert not Path(name).exists()


def test_a_message_is_not_written_to_a_foreign_file(plain: Setting, name: str) -> None:
    Path(name).write_text("precious")
    pod = pod_of({"terminationMessagePath": name})
    assert "is not owned by the pod" in plain.refusal(pod).message
    plain.remove(pod)
    assert Path(name).read_text() == "precious"


def test_a_link_in_place_of_a_message_is_not_followed(
    plain: Setting, name: str, tmp_path: Path
) -> None:
    pod = pod_of({"terminationMessagePath": name})
    plain.start(pod)
    Path(name).unlink()
    (tmp_path / "victim").write_text("precious")
    Path(name).symlink_to(tmp_path / "victim")
    assert "is not owned by the pod" in plain.refusal(pod).message
    plain.remove(pod)
    assert (tmp_path / "victim").read_text() == "precious"


def test_what_is_made_is_for_the_owner_alone(isolated: Setting) -> None:
    old = os.umask(0)
    try:
        isolated.start(with_mount("/data"))
    finally:
        os.umask(old)
    pod = PodFolder(isolated.root, pod_of().uid)
    for folder in (isolated.root, pod.path, pod.volumes, pod.containers, pod.container("1").path):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
    assert stat.S_IMODE((pod.volumes / "v").stat().st_mode) == 0o777


def test_each_attempt_has_a_hosts_file(isolated: Setting) -> None:
    command = isolated.start(pod_of())
    hosts = PodFolder(isolated.root, pod_of().uid).container("1").hosts
    assert hosts.read_text().endswith("10.0.0.1\tp\n")
    assert stat.S_IMODE(hosts.stat().st_mode) == 0o644
    arguments = list(command.bubblewrap or ())
    mount = arguments.index(str(hosts))
    assert arguments[mount - 1 : mount + 2] == ["--ro-bind", str(hosts), "/etc/hosts"]


def test_a_failing_volume_is_reported_as_upstream_does(isolated: Setting) -> None:
    refused = isolated.refusal(with_mount("/data", {"configMap": {"name": "c"}}))
    message = 'MountVolume.SetUp failed for volume "v" : configmap "c" not found'
    assert (refused.reason, refused.message) == ("FailedMount", message)
    assert refused.retry_soon


def test_a_token_that_is_forbidden_for_a_moment_is_tried_again_soon(isolated: Setting) -> None:
    isolated.objects.error = DeniedError("serviceaccounts token is forbidden")
    token = {"sources": [{"serviceAccountToken": {"path": "token"}}]}
    refused = isolated.refusal(with_mount("/data", {"projected": token}))
    assert refused.retry_soon
    assert "failed to fetch token: serviceaccounts token is forbidden" in refused.message


@pytest.mark.parametrize(
    ("volume", "part"),
    [
        ({"nfs": {"server": "x", "path": "/"}}, 'volumes.nfs: "v" is not supported'),
        ({"persistentVolumeClaim": {"claimName": "x"}}, "volumes.persistentVolumeClaim"),
        ({"csi": {"driver": "x"}}, "volumes.csi"),
        ({"image": {"reference": "x"}}, "volumes.image"),
        ({"ephemeral": {}}, "volumes.ephemeral"),
        ({"emptyDir": {"medium": "HugePages"}}, 'volumes.emptyDir.medium: "HugePages"'),
    ],
)
def test_volumes_that_we_do_not_have_are_refused_by_name(
    isolated: Setting, volume: dict[str, Any], part: str
) -> None:
    refused = isolated.refusal(with_mount("/data", volume))
    assert refused.reason == "CreateContainerConfigError"
    assert part in refused.message


@pytest.mark.parametrize(
    ("mount", "part"),
    [
        ({"mountPropagation": "Bidirectional"}, "mountPropagation"),
        ({"subPath": "/abs"}, "error SubPath `/abs` must not be an absolute path"),
        ({"subPath": "../x"}, "unable to provision SubPath `../x`: must not contain '..'"),
        ({"subPathExpr": "$(NONE)"}, "missing value for NONE"),
        ({"mountPath": "/"}, "nothing can be mounted there"),
        ({"mountPath": "/proc/self"}, "nothing can be mounted there"),
        ({"mountPath": "/a/../b"}, "the path is not valid"),
        ({"name": "w"}, 'cannot find volume "w" to mount into container "a"'),
    ],
)
def test_mounts_that_cannot_be(isolated: Setting, mount: dict[str, Any], part: str) -> None:
    pod = with_mount(mount.pop("mountPath", "/data"), **{"name": "v", **mount})
    assert part in isolated.refusal(pod).message


def test_contents_follow_their_objects(isolated: Setting) -> None:
    isolated.objects.put_config_map("c", k="old")
    pod = with_mount("/data", {"configMap": {"name": "c"}})
    isolated.start(pod)
    isolated.objects.put_config_map("c", k="new")
    isolated.refresh(pod)
    assert (isolated.volumes / "v/k").read_text() == "new"


def test_contents_do_not_come_back_after_the_pod(isolated: Setting) -> None:
    isolated.objects.put_config_map("c", k="old")
    pod = with_mount("/data", {"configMap": {"name": "c"}})
    isolated.start(pod)
    read = isolated.objects.config_map

    async def read_slowly(namespace: str, name: str) -> ConfigMap | None:
        remove_tree(PodFolder(isolated.root, pod.uid).path)
        return await read(namespace, name)

    isolated.objects.config_map = read_slowly  # type: ignore[method-assign]
    isolated.refresh(pod)
    assert list((isolated.root / "pods").iterdir()) == []


def test_contents_stay_while_the_server_is_down(isolated: Setting) -> None:
    isolated.objects.put_config_map("c", k="old")
    pod = with_mount("/data", {"configMap": {"name": "c"}})
    isolated.start(pod)
    isolated.objects.error = UnavailableError("no answer")
    with pytest.raises(CannotStartError, match="no answer"):
        isolated.refresh(pod)
    assert (isolated.volumes / "v/k").read_text() == "old"


def test_a_token_is_renewed_before_it_ends_and_kept_in_an_outage(isolated: Setting) -> None:
    source = {"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}
    pod = with_mount("/data", source)
    isolated.start(pod)
    token = isolated.volumes / "v/token"
    assert token.read_text() == "token-1--3600"
    isolated.pass_time(2800)
    isolated.refresh(pod)
    assert token.read_text() == "token-1--3600"
    isolated.pass_time(200)
    isolated.objects.error = UnavailableError("no answer")
    isolated.refresh(pod)
    assert token.read_text() == "token-1--3600"
    isolated.objects.error = None
    isolated.refresh(pod)
    assert token.read_text() == "token-2--3600"


def test_a_command_shows_no_values(isolated: Setting) -> None:
    pod = pod_of({"env": [{"name": "PW", "value": "hush"}]})
    command = isolated.start(pod)
    assert "hush" in command.env.values()
    assert "hush" not in repr(command)


def test_a_folder_is_removed_whatever_its_modes_and_links(tmp_path: Path) -> None:
    folder, victim = tmp_path / "gone", tmp_path / "victim"
    (folder / "a/b").mkdir(parents=True)
    victim.mkdir(mode=0o755)
    (folder / "a/link").symlink_to(victim)
    (folder / "a/b").chmod(0)
    (folder / "a").chmod(0)
    remove_tree(folder)
    remove_tree(folder)
    assert not folder.exists()
    assert stat.S_IMODE(victim.stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("container", "spec"),
    [
        ({"command": ["echo", "a\0--bind"]}, {}),
        ({"workingDir": "/\0--bind\0/\0/"}, {}),
        ({"terminationMessagePath": "/x\0--bind"}, {}),
        ({}, {"hostname": "p\0--bind\0/\0/host"}),
    ],
)
def test_no_argument_can_be_injected(
    isolated: Setting, container: dict[str, Any], spec: dict[str, Any]
) -> None:
    """Arguments are passed to bubblewrap separated by NUL."""
    assert isolated.refusal(pod_of(container, **spec)).reason == "CreateContainerConfigError"
