"""What pods ask for arrives in their containers, and nothing is left of them afterwards."""

import asyncio
import base64
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from podstatus.base.system_clock import SystemClock
from podstatus.kube.objects.authentication import TokenRequestStatus
from podstatus.kube.objects.cluster import ConfigMap, Secret
from podstatus.kube.objects.containers import (
    ConfigMapKeySelector,
    Container,
    EnvVar,
    EnvVarSource,
    EphemeralContainer,
    ResourceRequirements,
    SecurityContext,
    VolumeMount,
)
from podstatus.kube.objects.meta import ObjectFieldSelector
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import HostAlias, PodSpec
from podstatus.kube.objects.runtime_facts import (
    ContainerFacts,
    ContainerRunState,
    PodFacts,
    SandboxState,
)
from podstatus.kube.objects.volumes import (
    ConfigMapVolumeSource,
    EmptyDirVolumeSource,
    SecretVolumeSource,
    Volume,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.cri.cri_runtime import CriRuntime
from podstatus.runtime.port import CannotStartError, RuntimeDownError
from podstatus.runtime.run_command import CommandError, run_command
from podstatus.runtime.streams import LogOptions, StreamUnavailableError
from podstatus.testing.builders import make_pod
from tests.support.processes.containerd import AS_USER, BUSYBOX, NO_COMMAND, Containerd
from tests.support.processes.cri_runtime import HOST_IPS, open_cri_runtime

pytestmark = pytest.mark.containerd


class SomeObjects:
    """An API server with one configMap and one secret."""

    async def config_map(self, namespace: str, name: str) -> ConfigMap | None:
        return ConfigMap(data={"key": "of-config"}) if name == "config" else None

    async def secret(self, namespace: str, name: str) -> Secret | None:
        data = {"password": base64.b64encode(b"of-secret").decode()}
        return Secret(data=data) if name == "secret" else None

    async def service_account_token(
        self, pod: Pod, audience: str, expiration_seconds: int
    ) -> TokenRequestStatus:
        raise NotImplementedError


class Node:
    """A runtime on containerd, with what tests do to it."""

    def __init__(self, runtime: CriRuntime, folder: Path) -> None:
        self.runtime = runtime
        self.folder = folder

    async def start(self, pod: Pod) -> ContainerFacts:
        """Start a pod and its container; return the attempt."""
        await self.runtime.start_pod(pod)
        (container,) = pod.spec.containers or ()
        id = await self.runtime.start_container(pod, container, restart_count=0)
        return await self.attempt(pod, id)

    async def facts(self, pod: Pod) -> PodFacts:
        listed = await self.runtime.list_pods(pod.uid)
        return listed[0].facts if listed else PodFacts()

    async def attempt(self, pod: Pod, id: str) -> ContainerFacts:
        facts = await self.facts(pod)
        return next(attempt for attempt in facts.containers if attempt.id == id)

    async def run(self, pod: Pod) -> ContainerFacts:
        """Start a pod whose container ends by itself; return how it ended."""
        return await self.ended(pod, (await self.start(pod)).id)

    async def ended(self, pod: Pod, id: str) -> ContainerFacts:
        """Wait for the end of an attempt."""
        exited = ContainerRunState.EXITED
        while (attempt := await self.attempt(pod, id)).state is not exited:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        return attempt

    async def output(self, pod: Pod) -> list[str]:
        """Run a pod to its end; return the lines of its log."""
        attempt = await self.run(pod)
        return await self.log(pod, attempt.id)

    async def log(self, pod: Pod, id: str, *, follow: bool = False) -> list[str]:
        options = LogOptions(follow=follow)
        chunks = [c async for c in self.runtime.container_logs(pod.uid, id, options)]
        return b"".join(chunks).decode().splitlines()


@asynccontextmanager
async def open_node(containerd: Containerd, folder: Path) -> AsyncIterator[Node]:
    async with open_cri_runtime(containerd.endpoint, folder, objects=SomeObjects()) as runtime:
        yield Node(runtime, folder)


@pytest.fixture
async def node(containerd: Containerd, tmp_path: Path) -> AsyncIterator[Node]:
    async with open_node(containerd, tmp_path) as node:
        yield node


def a_pod(script: str = "", *, spec: dict[str, Any] | None = None, **fields: Any) -> Pod:
    command = {"command": ("/bin/sh", "-c", script)} if script else {}
    container = Container(**{"name": "app", "image": BUSYBOX, **command, **fields})
    pod = make_pod("pod", uid="uid-1")
    return structs.replace(pod, spec=PodSpec(containers=(container,), **(spec or {})))


async def test_name_and_version_are_those_of_the_runtime(node: Node) -> None:
    assert node.runtime.name == "containerd"
    assert node.runtime.version.startswith("1.")


async def test_the_environment(node: Node) -> None:
    env = (
        EnvVar(name="A", value="1"),
        EnvVar(name="B", value="$(A)2"),
        EnvVar(
            name="C",
            value_from=EnvVarSource(
                config_map_key_ref=ConfigMapKeySelector(name="config", key="key")
            ),
        ),
        EnvVar(
            name="IP",
            value_from=EnvVarSource(field_ref=ObjectFieldSelector(field_path="status.podIP")),
        ),
        EnvVar(
            name="HOST",
            value_from=EnvVarSource(field_ref=ObjectFieldSelector(field_path="status.hostIP")),
        ),
    )
    lines = await node.output(a_pod("echo $A $B $C $IP $HOST $HOSTNAME $PATH", env=env))
    a, b, config, ip, host, hostname, path = lines[0].split()
    assert (a, b, config, hostname, path) == ("1", "12", "of-config", "pod", "/bin")
    assert host == HOST_IPS[0]
    assert ip.startswith("10.213."), "the address of the pod, not of the host"


async def test_volumes(node: Node) -> None:
    volumes = (
        Volume(name="c", config_map=ConfigMapVolumeSource(name="config")),
        Volume(name="s", secret=SecretVolumeSource(secret_name="secret")),  # noqa: S106
        Volume(name="e", empty_dir=EmptyDirVolumeSource()),
    )
    mounts = (
        VolumeMount(name="c", mount_path="/c"),
        VolumeMount(name="s", mount_path="/s"),
        VolumeMount(name="e", mount_path="/e"),
        VolumeMount(name="e", mount_path="/below", sub_path="sub"),
    )
    script = "exec 2>&1; cat /c/key /s/password; echo; echo x > /below/f; cat /e/sub/f; touch /c/no"
    pod = a_pod(script, volume_mounts=mounts, spec={"volumes": volumes})
    first, second, third = await node.output(pod)
    assert (first, second) == ("of-configof-secret", "x")
    assert "Read-only" in third


async def test_the_hosts_file_and_the_hostname(node: Node) -> None:
    alias = HostAlias(ip="10.9.9.9", hostnames=("db",))
    pod = a_pod("hostname; cat /etc/hosts", spec={"hostname": "web", "host_aliases": (alias,)})
    hostname, *hosts = await node.output(pod)
    assert hostname == "web"
    assert hosts[0] == "# Kubernetes-managed hosts file."
    assert any(line.endswith("\tweb") for line in hosts)
    assert "10.9.9.9\tdb" in hosts


async def test_a_pod_on_the_network_of_the_host(node: Node) -> None:
    pod = a_pod("sleep 600", spec={"host_network": True})
    await node.start(pod)
    facts = await node.facts(pod)
    assert facts.ips == ()
    assert facts.sandboxes[0].network.value == "NODE"


async def test_the_entrypoint_and_user_of_the_image(node: Node) -> None:
    pod = a_pod(image=AS_USER, args=("id -u; pwd",))
    assert await node.output(pod) == ["1000", "/work"]


async def test_an_image_without_a_command(node: Node) -> None:
    with pytest.raises(CannotStartError, match="no command specified") as failed:
        await node.start(a_pod(image=NO_COMMAND))
    assert failed.value.reason == "CreateContainerError"
    assert (await node.facts(a_pod())).containers == ()


async def test_the_user_of_the_spec(node: Node) -> None:
    context = SecurityContext(run_as_user=7, run_as_group=8, read_only_root_filesystem=True)
    lines = await node.output(a_pod("exec 2>&1; id -u; id -g; touch /x", security_context=context))
    assert lines[:2] == ["7", "8"]
    assert "Read-only" in lines[2]


async def test_a_container_that_must_not_be_root(node: Node) -> None:
    context = SecurityContext(run_as_non_root=True)
    with pytest.raises(CannotStartError, match="image will run as root"):
        await node.start(a_pod("id", security_context=context))
    with pytest.raises(CannotStartError, match=r"non-numeric user \(user\)"):
        await node.start(a_pod(image=AS_USER, security_context=context))


async def test_the_termination_message(node: Node) -> None:
    script = "echo -n bye > /dev/termination-log; exit 3"
    ended = await node.run(a_pod(script, termination_message_path="/dev/termination-log"))
    assert (ended.exit_code, ended.reason, ended.message) == (3, "Error", "bye")


@pytest.mark.parametrize(("code", "message"), [(3, "last words\n"), (0, "")])
async def test_the_log_is_the_message_of_a_failure_only(
    node: Node, code: int, message: str
) -> None:
    fields: dict[str, Any] = {
        "termination_message_path": "/dev/termination-log",
        "termination_message_policy": "FallbackToLogsOnError",
    }
    ended = await node.run(a_pod(f"echo last words; exit {code}", **fields))
    assert (ended.exit_code, ended.message) == (code, message)


async def test_a_log_is_followed_to_the_end(node: Node) -> None:
    pod = a_pod("for i in 1 2 3; do echo $i; sleep 0.2; done")
    attempt = await node.start(pod)

    async def relist() -> None:
        while True:
            await node.runtime.list_pods()
            await asyncio.sleep(0.1)

    relisting = asyncio.create_task(relist())
    assert await node.log(pod, attempt.id, follow=True) == ["1", "2", "3"]
    relisting.cancel()
    with pytest.raises(StreamUnavailableError, match="does not exist any more"):
        await node.log(pod, "containerd://none")


async def test_limits_are_enforced(node: Node) -> None:
    amounts = {"cpu": Quantity("200m"), "memory": Quantity("16Mi")}
    resources = ResourceRequirements(requests=amounts, limits=amounts)
    ended = await node.run(a_pod("tail /dev/zero", resources=resources))
    assert (ended.reason, ended.exit_code) == ("OOMKilled", 137)


async def run_in(node: Node, pod: Pod, id: str, script: str, seconds: float = 20.0) -> str:
    """Run a command as probes and hooks do; return exit code and output."""
    command = ("/bin/sh", "-c", script)
    result = await run_command(
        node.runtime, pod.uid, id, command, seconds=seconds, clock=SystemClock()
    )
    return f"{result.exit_code} {result.output}"


async def test_a_command_in_a_container(node: Node) -> None:
    pod = a_pod("exec sleep 600")
    attempt = await node.start(pod)
    assert await run_in(node, pod, attempt.id, "echo out; echo err >&2; exit 3") == "3 out\nerr\n"
    with pytest.raises(CommandError, match="no such file or directory"):
        await run_command(
            node.runtime, pod.uid, attempt.id, ("/none",), seconds=20.0, clock=SystemClock()
        )
    with pytest.raises(CommandError, match="does not exist"):
        await run_in(node, pod, "containerd://none", "id")


async def test_a_command_that_takes_too_long_is_killed(node: Node) -> None:
    pod = a_pod("exec sleep 600")
    attempt = await node.start(pod)
    with pytest.raises(TimeoutError):
        await run_in(node, pod, attempt.id, "exec sleep 4712", 0.5)
    while "4712" in await run_in(node, pod, attempt.id, "ps"):  # noqa: ASYNC110
        await asyncio.sleep(0.05)


async def test_a_debugger_sees_the_processes_of_its_target(node: Node) -> None:
    pod = a_pod("exec sleep 4711")
    await node.start(pod)
    debugger = EphemeralContainer(
        name="debug",
        image=BUSYBOX,
        command=("/bin/sh", "-c", "ps"),
        target_container_name="app",
    )
    id = await node.runtime.start_container(pod, debugger, restart_count=0)
    await node.ended(pod, id)
    assert any("sleep 4711" in line for line in await node.log(pod, id))


@pytest.mark.parametrize(
    ("image", "policy", "reason", "message"),
    [
        ("localhost/none:1", "Never", "ErrImageNeverPull", "with pull policy of Never"),
        ("UPPER", "", "InvalidImageName", "must be lowercase"),
        ("localhost:1/none:1", "Always", "ErrImagePull", "failed to pull and unpack image"),
    ],
)
async def test_an_image_that_cannot_be_had(
    node: Node, image: str, policy: str, reason: str, message: str
) -> None:
    pod = a_pod("id", image=image, image_pull_policy=policy)
    with pytest.raises(CannotStartError, match=message) as failed:
        await node.start(pod)
    assert failed.value.reason == reason
    if reason == "ErrImagePull":
        with pytest.raises(CannotStartError, match="Back-off pulling image") as failed:
            await node.start(pod)
        assert failed.value.reason == "ImagePullBackOff"
        assert "ErrImagePull: " in failed.value.message


async def test_a_field_that_is_not_supported_is_refused_by_name(node: Node) -> None:
    with pytest.raises(CannotStartError, match="hostUsers: false is not supported"):
        await node.start(a_pod("id", spec={"host_users": False}))
    assert await node.runtime.list_pods() == ()


async def test_older_attempts_are_removed_with_their_files(node: Node) -> None:
    pod = a_pod("exit 1")
    (container,) = pod.spec.containers or ()
    await node.runtime.start_pod(pod)
    for count in range(4):
        id = await node.runtime.start_container(pod, container, restart_count=count)
        await node.ended(pod, id)
    attempts = (await node.facts(pod)).containers
    assert [attempt.restart_count for attempt in attempts] == [3, 2]
    logs = sorted(path.name for path in node.folder.glob("logs/*/app/*"))
    assert logs == ["2.log", "3.log"]


async def test_a_removed_pod_leaves_nothing(node: Node, containerd: Containerd) -> None:
    volume = Volume(name="e", empty_dir=EmptyDirVolumeSource(medium="Memory"))
    mount = VolumeMount(name="e", mount_path="/e")
    pod = a_pod(
        "sleep 600",
        volume_mounts=(mount,),
        spec={"volumes": (volume,)},
        termination_message_path="/dev/termination-log",
    )
    await node.start(pod)
    assert len(containerd.tasks()) == 2
    await node.runtime.remove_pod(pod.uid)
    assert (containerd.tasks(), await node.runtime.list_pods()) == ([], ())
    files = [path for path in node.folder.rglob("*") if path.name not in ("pods", "logs")]
    assert files == []


async def test_a_sandbox_that_was_killed_from_outside_is_replaced(
    node: Node, containerd: Containerd
) -> None:
    pod = a_pod("sleep 600")
    await node.start(pod)
    before = (await node.facts(pod)).sandboxes[0]
    containerd.ctr("tasks", "kill", "-s", "SIGKILL", before.id)
    while (await node.facts(pod)).sandboxes[0].state is SandboxState.READY:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    await node.runtime.start_pod(pod)
    (container,) = pod.spec.containers or ()
    await node.runtime.start_container(pod, container, restart_count=1)
    facts = await node.facts(pod)
    assert [sandbox.attempt for sandbox in facts.sandboxes] == [1, 0]
    assert [attempt.active for attempt in facts.containers] == [True, False]
    assert facts.ips != ()


async def test_pods_survive_a_restart_of_the_runtime(node: Node, containerd: Containerd) -> None:
    pod = a_pod("sleep 600")
    await node.start(pod)
    before = await node.runtime.list_pods()
    containerd.end(signal.SIGKILL)
    with pytest.raises(RuntimeDownError):
        await node.runtime.list_pods()
    await asyncio.to_thread(containerd.start)
    while True:
        try:
            after = await node.runtime.list_pods()
        except RuntimeDownError:
            continue
        break
    assert after == before


async def test_while_nothing_changes_the_list_has_the_same_objects(node: Node) -> None:
    await node.start(a_pod("sleep 600"))
    (one,), (other,) = await node.runtime.list_pods(), await node.runtime.list_pods()
    assert one is other
