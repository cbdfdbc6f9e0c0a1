from typing import Any

import pytest

from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.spec.capabilities import (
    ADDABLE,
    CAPABILITIES,
    DEFAULT,
    SANDBOX_DEFAULT,
    capability_numbers,
)
from podstatus.runtime.process.spec.security import (
    HostSupport,
    Ownership,
    ProcessCredentials,
    credentials,
    ownership,
)
from podstatus.runtime.process.spec.unsupported_fields import check_fields
from tests.support.processes.process_pods import UID, pod_of

ROOT = HostSupport(user=0, group=0, isolated=True)
PLAIN_ROOT = HostSupport(user=0, group=0, isolated=False)
USER = HostSupport(user=1001, group=1001, groups=(27,), isolated=True)
WHERE = f'(pod: "p_ns({UID})", container: a)'


def run_as(
    can: HostSupport, own: dict[str, Any] | None = None, of_pod: dict[str, Any] | None = None
) -> ProcessCredentials:
    pod = pod_of({"securityContext": own}, securityContext=of_pod)
    return credentials(pod, (pod.spec.containers or ())[0], can)


def refusal(
    can: HostSupport, own: dict[str, Any] | None = None, of_pod: dict[str, Any] | None = None
) -> str:
    with pytest.raises(CannotStartError) as refused:
        run_as(can, own, of_pod)
    assert refused.value.reason == "CreateContainerConfigError"
    return refused.value.message


@pytest.mark.parametrize(
    ("own", "of_pod", "user", "group", "groups"),
    [
        (None, None, 0, 0, None),
        ({"runAsUser": 5}, None, 5, 5, ()),
        (None, {"runAsUser": 5}, 5, 5, ()),
        ({"runAsUser": 6}, {"runAsUser": 5, "runAsGroup": 7}, 6, 7, ()),
        ({"runAsGroup": 8}, {"runAsGroup": 7}, 0, 8, ()),
        (None, {"supplementalGroups": [9, 3], "fsGroup": 4}, 0, 0, (3, 4, 9)),
        ({"runAsUser": 0}, None, 0, 0, None),
    ],
)
def test_root_becomes_whom_the_spec_says(
    own: dict[str, Any] | None,
    of_pod: dict[str, Any] | None,
    user: int,
    group: int,
    groups: tuple[int, ...] | None,
) -> None:
    credentials = run_as(ROOT, own, of_pod)
    assert (credentials.user, credentials.group, credentials.groups) == (user, group, groups)


@pytest.mark.parametrize(
    "of_pod",
    [
        {"runAsUser": 1001},
        {"runAsUser": 1001, "runAsGroup": 1001, "runAsNonRoot": True},
        {"fsGroup": 27, "supplementalGroups": [1001]},
    ],
)
def test_an_ordinary_user_is_itself(of_pod: dict[str, Any]) -> None:
    credentials = run_as(USER, None, of_pod)
    assert (credentials.user, credentials.group, credentials.groups, credentials.capabilities) == (
        1001,
        1001,
        None,
        (),
    )


@pytest.mark.parametrize(
    ("of_pod", "part"),
    [
        ({"runAsUser": 0}, "securityContext.runAsUser: 0 is not supported: the agent is an "),
        ({"runAsUser": 1000}, "securityContext.runAsUser: 1000 "),
        ({"runAsGroup": 27}, "securityContext.runAsGroup: 27 "),
        ({"fsGroup": 28}, "not in group 28"),
        ({"supplementalGroups": [27, 5]}, "not in group 5"),
    ],
)
def test_an_ordinary_user_cannot_switch_users(of_pod: dict[str, Any], part: str) -> None:
    assert part in refusal(USER, None, of_pod)


def test_who_must_not_be_root_is_not() -> None:
    assert run_as(ROOT, {"runAsUser": 5, "runAsNonRoot": True}).user == 5
    assert run_as(ROOT, {"runAsNonRoot": False}, {"runAsNonRoot": True}).user == 0
    message = refusal(ROOT, {"runAsNonRoot": True})
    assert message == f"container has runAsNonRoot and image will run as root {WHERE}"
    message = refusal(ROOT, {"runAsNonRoot": True, "runAsUser": 0})
    assert message == f"container's runAsUser breaks non-root policy {WHERE}"


@pytest.mark.parametrize("number", [-1, 2**32 - 1, 2**40])
def test_ids_that_the_kernel_does_not_have(number: int) -> None:
    assert "out of range" in refusal(ROOT, {"runAsUser": number})


def test_without_setpriv_users_are_not_switched() -> None:
    can = HostSupport(user=0, group=0, isolated=True, can_switch_user=False)
    assert run_as(can).user == 0
    assert "setpriv" in refusal(can, {"runAsUser": 5})


@pytest.mark.parametrize(
    ("requested", "left"),
    [
        (None, SANDBOX_DEFAULT),
        ({"drop": ["ALL"]}, set()),
        ({"drop": ["all"], "add": ["NET_BIND_SERVICE"]}, {"NET_BIND_SERVICE"}),
        ({"drop": ["CAP_KILL"]}, SANDBOX_DEFAULT - {"KILL"}),
        ({"add": ["NET_RAW"]}, {*SANDBOX_DEFAULT, "NET_RAW"}),
    ],
)
def test_root_keeps_a_few_capabilities(requested: dict[str, Any] | None, left: set[str]) -> None:
    assert set(run_as(ROOT, {"capabilities": requested}).capabilities) == left


def test_only_root_keeps_any() -> None:
    assert run_as(ROOT, {"runAsUser": 5}).capabilities == ()


@pytest.mark.parametrize(
    "name", ["SYS_ADMIN", "CAP_SYS_ADMIN", "ALL", "DAC_READ_SEARCH", "SYS_MODULE", "NET_ADMIN"]
)
def test_what_could_undo_the_isolation_is_refused(name: str) -> None:
    assert "would break the isolation" in refusal(ROOT, {"capabilities": {"add": [name]}})


def test_nothing_of_what_is_given_reaches_beyond() -> None:
    beyond = {"SYS_ADMIN", "SYS_MODULE", "SYS_RAWIO", "SYS_PTRACE", "DAC_READ_SEARCH", "MKNOD"}
    beyond |= {"NET_ADMIN", "BPF", "SYS_BOOT", "SYS_TIME", "MAC_ADMIN", "SETFCAP", "SYSLOG"}
    assert not beyond & (SANDBOX_DEFAULT | ADDABLE)


@pytest.mark.parametrize(
    ("requested", "left"),
    [
        (None, DEFAULT),
        ({"drop": ["ALL"]}, set()),
        ({"drop": ["MKNOD"]}, DEFAULT - {"MKNOD"}),
        ({"drop": ["ALL"], "add": ["SYS_ADMIN"]}, {"SYS_ADMIN"}),
        ({"add": ["CAP_NET_ADMIN"]}, {*DEFAULT, "NET_ADMIN"}),
        ({"add": ["ALL"]}, {*CAPABILITIES}),
    ],
)
def test_without_isolation_root_has_the_default_set_and_what_it_asks_for(
    requested: dict[str, Any] | None, left: set[str]
) -> None:
    assert set(run_as(PLAIN_ROOT, {"capabilities": requested}).capabilities) == left


def test_without_isolation_other_users_have_no_capabilities() -> None:
    assert run_as(PLAIN_ROOT, {"runAsUser": 5}).capabilities == ()
    requested = {"runAsUser": 5, "capabilities": {"add": ["KILL"]}}
    assert "remove runAsUser" in refusal(PLAIN_ROOT, requested)


def test_an_ordinary_user_has_no_capabilities_to_give() -> None:
    assert run_as(USER, {"capabilities": {"drop": ["ALL"]}}).capabilities == ()
    assert "cannot grant any" in refusal(USER, {"capabilities": {"add": ["NET_RAW"]}})


def test_a_capability_that_does_not_exist_is_refused() -> None:
    for can in (ROOT, PLAIN_ROOT):
        assert "unknown capability" in refusal(can, {"capabilities": {"add": ["NET_RAY"]}})


def test_the_default_set_is_that_of_containerd() -> None:
    assert sum(1 << number for number in capability_numbers(DEFAULT)) == 0xA80425FB


def test_to_whom_volumes_belong() -> None:
    pod = pod_of({"securityContext": {"runAsUser": 5}}, securityContext={"fsGroup": 7})
    assert ownership(pod, ROOT) == Ownership(group=7, user=5)
    other = {"name": "i", "image": "x"}
    two = pod_of({"securityContext": {"runAsUser": 5}}, initContainers=[other])
    assert ownership(two, ROOT) == Ownership()
    assert ownership(pod_of(securityContext={"fsGroup": 27}), USER) == Ownership(group=27)


LOCALHOST = {"type": "Localhost", "localhostProfile": "x"}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"hostPID": True}, "hostPID: true"),
        ({"shareProcessNamespace": True}, "shareProcessNamespace: true"),
        ({"hostUsers": False}, "hostUsers: false"),
        ({"dnsPolicy": "None", "dnsConfig": {"nameservers": ["1.1.1.1"]}}, "dnsConfig"),
        ({"runtimeClassName": "gvisor"}, 'runtimeClassName: "gvisor"'),
        ({"resourceClaims": [{"name": "gpu"}]}, "resourceClaims: [gpu]"),
        ({"os": {"name": "windows"}}, "os.name"),
        ({"setHostnameAsFQDN": True}, "setHostnameAsFQDN"),
        ({"securityContext": {"windowsOptions": {}}}, "windowsOptions"),
        ({"securityContext": {"seLinuxOptions": {"level": "s0"}}}, 'seLinuxOptions: "s0"'),
        ({"securityContext": {"appArmorProfile": LOCALHOST}}, "appArmorProfile"),
        ({"securityContext": {"supplementalGroupsPolicy": "Odd"}}, "supplementalGroupsPolicy"),
    ],
)
def test_fields_of_the_pod_that_cannot_be_honoured(spec: dict[str, Any], field: str) -> None:
    assert field in _field_refusal(None, spec)


@pytest.mark.parametrize(
    ("own", "field"),
    [
        ({"privileged": True}, "securityContext.privileged: true"),
        ({"procMount": "Unmasked"}, 'securityContext.procMount: "Unmasked"'),
        ({"appArmorProfile": {"type": "RuntimeDefault"}}, "appArmorProfile"),
        ({"seLinuxOptions": {"type": "t"}}, "seLinuxOptions"),
        ({"windowsOptions": {"hostProcess": True}}, "windowsOptions"),
    ],
)
def test_fields_of_a_container_that_cannot_be_honoured(own: dict[str, Any], field: str) -> None:
    assert field in _field_refusal({"securityContext": own}, {})


def test_devices_cannot_be_had() -> None:
    devices = [{"name": "d", "devicePath": "/dev/x"}]
    assert "volumeDevices: [d]" in _field_refusal({"volumeDevices": devices}, {})
    claims = {"claims": [{"name": "gpu"}]}
    assert "resources.claims: [gpu]" in _field_refusal({"resources": claims}, {})


def test_host_aliases_take_isolation() -> None:
    pod = pod_of(hostAliases=[{"ip": "1.2.3.4", "hostnames": ["x"]}])
    container = (pod.spec.containers or ())[0]
    check_fields(pod, container, isolated=True)
    with pytest.raises(CannotStartError, match=r"hostAliases: \[x\] .*--isolation=bubblewrap"):
        check_fields(pod, container, isolated=False)


def test_a_read_only_root_takes_isolation() -> None:
    pod = pod_of({"securityContext": {"readOnlyRootFilesystem": True}})
    container = (pod.spec.containers or ())[0]
    check_fields(pod, container, isolated=True)
    with pytest.raises(CannotStartError, match="--isolation=bubblewrap"):
        check_fields(pod, container, isolated=False)


@pytest.mark.parametrize(
    ("own", "spec"),
    [
        ({}, {"dnsPolicy": "ClusterFirst", "hostNetwork": True, "hostIPC": True}),
        ({}, {"dnsPolicy": "Default", "hostUsers": True, "os": {"name": "linux"}}),
        ({"privileged": False, "procMount": "Default"}, {"shareProcessNamespace": False}),
        ({"allowPrivilegeEscalation": True}, {"securityContext": {"seLinuxOptions": {}}}),
    ],
)
def test_what_asks_for_nothing_special_is_fine(own: dict[str, Any], spec: dict[str, Any]) -> None:
    pod = pod_of({"securityContext": own}, **spec)
    check_fields(pod, (pod.spec.containers or ())[0], isolated=True)


def _field_refusal(container: dict[str, Any] | None, spec: dict[str, Any]) -> str:
    pod = pod_of(container, **spec)
    with pytest.raises(CannotStartError) as refused:
        check_fields(pod, (pod.spec.containers or ())[0], isolated=True)
    assert refused.value.reason == "CreateContainerConfigError"
    assert " is not supported: " in refused.value.message
    return refused.value.message
