"""A field that the runtime does not honour is refused by name, whatever its value."""

from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.objects.containers import (
    AppArmorProfile,
    Container,
    Lifecycle,
    ResourceClaim,
    ResourceRequirements,
    SeccompProfile,
    SecurityContext,
    VolumeDevice,
    VolumeMount,
    WindowsSecurityContextOptions,
)
from podstatus.kube.objects.pod_spec import PodOS, PodResourceClaim, PodSecurityContext, PodSpec
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.cri.model.unsupported_fields import (
    check_container_fields,
    check_pod_fields,
)
from podstatus.runtime.port import CannotStartError
from podstatus.testing.builders import make_pod

SET = {"cpu": Quantity("1")}
OF_POD: list[tuple[str, dict[str, Any]]] = [
    ("hostUsers", {"host_users": False}),
    ("runtimeClassName", {"runtime_class_name": "kata"}),
    ("resourceClaims", {"resource_claims": (PodResourceClaim(name="c"),)}),
    ("resources", {"resources": ResourceRequirements(limits=SET)}),
    ("os.name", {"os": PodOS(name="windows")}),
    ("setHostnameAsFQDN", {"set_hostname_as_fqdn": True}),
    (
        "securityContext.windowsOptions",
        {"security_context": PodSecurityContext(windows_options=WindowsSecurityContextOptions())},
    ),
    (
        "securityContext.supplementalGroupsPolicy",
        {"security_context": PodSecurityContext(supplemental_groups_policy="Strict")},
    ),
]
OF_CONTAINER: list[tuple[str, dict[str, Any]]] = [
    ("volumeDevices", {"volume_devices": (VolumeDevice(name="d", device_path="/d"),)}),
    ("resources.claims", {"resources": ResourceRequirements(claims=(ResourceClaim(name="c"),))}),
    (
        "resources.limits",
        {"resources": ResourceRequirements(limits={"hugepages-2Mi": Quantity("2Mi")})},
    ),
    ("lifecycle.stopSignal", {"lifecycle": Lifecycle(stop_signal="SIGUSR1")}),
    (
        "volumeMounts.recursiveReadOnly",
        {"volume_mounts": (VolumeMount(name="v", recursive_read_only="Enabled"),)},
    ),
    (
        "securityContext.windowsOptions",
        {"security_context": SecurityContext(windows_options=WindowsSecurityContextOptions())},
    ),
    (
        "securityContext.appArmorProfile.type",
        {
            "security_context": SecurityContext(
                app_armor_profile=AppArmorProfile(type="RuntimeDefault")
            )
        },
    ),
    (
        "securityContext.seccompProfile.type",
        {
            "security_context": SecurityContext(
                seccomp_profile=SeccompProfile(type="Localhost", localhost_profile="p")
            )
        },
    ),
]


@pytest.mark.parametrize(("field", "spec"), OF_POD, ids=[field for field, _ in OF_POD])
def test_a_field_of_the_pod_is_refused(field: str, spec: dict[str, Any]) -> None:
    with pytest.raises(CannotStartError) as refused:
        check_pod_fields(structs.replace(make_pod("pod"), spec=PodSpec(**spec)))
    assert refused.value.reason == "CreateContainerConfigError"
    assert refused.value.message.startswith(f"{field}: ")
    assert "is not supported: " in refused.value.message


@pytest.mark.parametrize(
    ("field", "values"), OF_CONTAINER, ids=[field for field, _ in OF_CONTAINER]
)
def test_a_field_of_a_container_is_refused(field: str, values: dict[str, Any]) -> None:
    container = Container(name="app", **values)
    with pytest.raises(CannotStartError, match="is not supported: ") as refused:
        check_container_fields(make_pod("pod"), container)
    assert refused.value.message.startswith(f"{field}: ")


def test_what_demands_no_more_than_the_default_is_accepted() -> None:
    context = PodSecurityContext(supplemental_groups_policy="Merge")
    spec = PodSpec(
        host_users=True, os=PodOS(name="linux"), security_context=context, runtime_class_name=""
    )
    own = SecurityContext(
        app_armor_profile=AppArmorProfile(type="Unconfined"),
        seccomp_profile=SeccompProfile(type="RuntimeDefault"),
    )
    mount = VolumeMount(name="v", recursive_read_only="IfPossible")
    pod = structs.replace(make_pod("pod"), spec=spec)
    check_pod_fields(pod)
    check_container_fields(pod, Container(name="app", security_context=own, volume_mounts=(mount,)))
