"""Security contexts: the container's field wins, nothing is lost, root is refused in time.

Upstream: TestVerifyRunAsNonRoot and TestDetermineEffectiveSecurityContext, kuberuntime v1.36.4.
"""

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import (
    Capabilities,
    Container,
    EphemeralContainer,
    SeccompProfile,
    SecurityContext,
)
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSecurityContext, PodSpec
from podstatus.runtime.cri.api import security as cri
from podstatus.runtime.cri.api.images import CriImage
from podstatus.runtime.cri.model.security import (
    container_security,
    namespace_options,
    sandbox_security,
)
from podstatus.runtime.port import CannotStartError
from podstatus.testing.builders import make_pod

ROOT_IMAGE, NUMERIC, NAMED = (
    CriImage(),
    CriImage(uid=cri.CriInt64Value(value=1000)),
    CriImage(username="user"),
)
NON_ROOT = SecurityContext(run_as_non_root=True)


def a_pod(own: SecurityContext | None = None, of_pod: PodSecurityContext | None = None) -> Pod:
    container = Container(name="app", security_context=own)
    spec = PodSpec(containers=(container,), security_context=of_pod)
    return structs.replace(make_pod("pod", uid="u"), spec=spec)


def translated(
    own: SecurityContext | None = None,
    of_pod: PodSecurityContext | None = None,
    image: CriImage = ROOT_IMAGE,
) -> cri.CriLinuxContainerSecurityContext:
    pod = a_pod(own, of_pod)
    (container,) = pod.spec.containers or ()
    return container_security(pod, container, image)


@pytest.mark.parametrize(
    ("image", "user", "name"), [(ROOT_IMAGE, 0, ""), (NUMERIC, 1000, ""), (NAMED, None, "user")]
)
def test_without_a_user_it_is_that_of_the_image(
    image: CriImage, user: int | None, name: str
) -> None:
    security = translated(image=image)
    assert (security.run_as_user.value if security.run_as_user else None) == user
    assert security.run_as_username == name


def test_the_user_of_the_container_wins() -> None:
    own = SecurityContext(run_as_user=0, run_as_group=0)
    of_pod = PodSecurityContext(
        run_as_user=7, run_as_group=8, supplemental_groups=(9, 10), fs_group=11
    )
    security = translated(own, of_pod, NAMED)
    assert security.run_as_user == security.run_as_group == cri.CriInt64Value(value=0)
    assert security.run_as_username == ""
    assert security.supplemental_groups == (11, 9, 10)
    inherited = translated(None, of_pod)
    assert inherited.run_as_user == cri.CriInt64Value(value=7)
    assert inherited.run_as_group == cri.CriInt64Value(value=8)


@pytest.mark.parametrize(
    ("own", "image", "why"),
    [
        (NON_ROOT, ROOT_IMAGE, "image will run as root"),
        (NON_ROOT, CriImage(uid=cri.CriInt64Value()), "image will run as root"),
        (NON_ROOT, NAMED, r"non-numeric user \(user\), cannot verify"),
        (NON_ROOT, CriImage(uid=cri.CriInt64Value(value=2**31)), "invalid user id"),
        (structs.replace(NON_ROOT, run_as_user=0), NUMERIC, "runAsUser breaks non-root policy"),
    ],
)
def test_root_is_refused(own: SecurityContext, image: CriImage, why: str) -> None:
    with pytest.raises(CannotStartError, match=why) as refused:
        translated(own, image=image)
    assert refused.value.reason == "CreateContainerConfigError"
    assert 'pod: "pod_default(u)", container: app' in refused.value.message


@pytest.mark.parametrize(
    ("own", "image"),
    [
        (NON_ROOT, NUMERIC),
        (structs.replace(NON_ROOT, run_as_user=5), ROOT_IMAGE),
        (SecurityContext(run_as_non_root=False), ROOT_IMAGE),
    ],
)
def test_other_users_are_not(own: SecurityContext, image: CriImage) -> None:
    translated(own, PodSecurityContext(run_as_non_root=True), image)


@pytest.mark.parametrize(
    ("profile", "kind"),
    [
        (None, cri.PROFILE_UNCONFINED),
        ("Unconfined", cri.PROFILE_UNCONFINED),
        ("RuntimeDefault", cri.PROFILE_RUNTIME_DEFAULT),
    ],
)
def test_the_seccomp_profile(profile: str | None, kind: int) -> None:
    own = None if profile is None else SeccompProfile(type=profile)
    expected = cri.CriSecurityProfile(profile_type=kind)
    assert translated(SecurityContext(seccomp_profile=own)).seccomp == expected
    assert translated(None, PodSecurityContext(seccomp_profile=own)).seccomp == expected


def test_privileges() -> None:
    own = SecurityContext(
        privileged=True,
        read_only_root_filesystem=True,
        allow_privilege_escalation=False,
        capabilities=Capabilities(add=("NET_ADMIN",), drop=("ALL",)),
    )
    security = translated(own)
    assert (security.privileged, security.readonly_rootfs, security.no_new_privs) == (True,) * 3
    assert security.capabilities == cri.CriCapability(
        add_capabilities=("NET_ADMIN",), drop_capabilities=("ALL",)
    )
    plain = translated()
    assert (plain.privileged, plain.readonly_rootfs, plain.no_new_privs) == (False,) * 3
    assert plain.capabilities is None


def test_proc_is_masked_unless_it_is_not_to_be() -> None:
    assert "/proc/kcore" in translated().masked_paths
    assert "/proc/sys" in translated().readonly_paths
    unmasked = translated(SecurityContext(proc_mount="Unmasked"))
    assert (unmasked.masked_paths, unmasked.readonly_paths) == ((), ())


@pytest.mark.parametrize(
    ("spec", "network", "pid", "ipc"),
    [
        (PodSpec(), 0, 1, 0),
        (PodSpec(host_network=True, host_pid=True, host_ipc=True), 2, 2, 2),
        (PodSpec(share_process_namespace=True), 0, 0, 0),
    ],
)
def test_namespaces(spec: PodSpec, network: int, pid: int, ipc: int) -> None:
    options = namespace_options(structs.replace(make_pod("pod"), spec=spec))
    assert options == cri.CriNamespaceOption(network=network, pid=pid, ipc=ipc)


def test_an_ephemeral_container_sees_the_processes_of_its_target() -> None:
    pod, debugger = a_pod(), EphemeralContainer(name="debug", target_container_name="app")
    options = container_security(pod, debugger, ROOT_IMAGE, target_id="c1").namespace_options
    assert options == cri.CriNamespaceOption(pid=cri.NAMESPACE_TARGET, target_id="c1")
    shared = structs.replace(pod, spec=structs.replace(pod.spec, share_process_namespace=True))
    options = container_security(shared, debugger, ROOT_IMAGE, target_id="c1").namespace_options
    assert options == cri.CriNamespaceOption(pid=cri.NAMESPACE_POD), "it sees them anyway"


def test_a_sandbox_is_privileged_if_one_of_its_containers_is() -> None:
    assert sandbox_security(a_pod()).privileged is False
    sandbox = sandbox_security(a_pod(SecurityContext(privileged=True)))
    assert sandbox.privileged is True
    assert sandbox.seccomp == cri.CriSecurityProfile(profile_type=cri.PROFILE_RUNTIME_DEFAULT)
