"""The sysctls that the process runtime sets, and those that it rejects."""

from typing import Any

import pytest

from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.spec.security import HostSupport
from podstatus.runtime.process.spec.sysctls import ipc_sysctls
from tests.support.processes.process_pods import pod_of

ROOT = HostSupport(user=0, group=0, isolated=True)
PLAIN_ROOT = HostSupport(user=0, group=0, isolated=False)
USER = HostSupport(user=1001, group=1001, isolated=True)
SHARED_MEMORY = {"name": "kernel.shm_rmid_forced", "value": "1"}
PORTS = {"name": "net.ipv4.ip_local_port_range", "value": "1024 65535"}
WHOLE_MACHINE = "they would apply to the whole machine; remove them"


def sysctls(support: HostSupport, *values: dict[str, str], **spec: Any) -> dict[str, str]:
    pod = pod_of(securityContext={"sysctls": list(values)}, **spec)
    return dict(ipc_sysctls(pod, support))


@pytest.mark.parametrize("support", [ROOT, PLAIN_ROOT, USER])
def test_a_pod_without_sysctls_needs_no_support(support: HostSupport) -> None:
    assert sysctls(support) == {}
    assert ipc_sysctls(pod_of(), support) == {}


def test_those_of_an_ipc_namespace_are_set() -> None:
    assert sysctls(ROOT, SHARED_MEMORY) == {"kernel.shm_rmid_forced": "1"}
    slashes = {"name": "kernel/shm_rmid_forced", "value": "0"}
    assert sysctls(ROOT, slashes) == {"kernel.shm_rmid_forced": "0"}


@pytest.mark.parametrize(
    ("support", "values", "spec", "message"),
    [
        (ROOT, [PORTS], {}, f"[net.ipv4.ip_local_port_range] is not supported: {WHOLE_MACHINE}"),
        (ROOT, [SHARED_MEMORY, PORTS], {}, WHOLE_MACHINE),
        (ROOT, [SHARED_MEMORY], {"hostIPC": True}, WHOLE_MACHINE),
        (PLAIN_ROOT, [SHARED_MEMORY], {}, WHOLE_MACHINE),
        (USER, [SHARED_MEMORY], {}, "the agent is an ordinary user and cannot set them"),
    ],
)
def test_others_are_rejected(
    support: HostSupport, values: list[dict[str, str]], spec: dict[str, Any], message: str
) -> None:
    with pytest.raises(CannotStartError) as rejected:
        sysctls(support, *values, **spec)
    assert rejected.value.message.startswith("securityContext.sysctls: [")
    assert message in rejected.value.message
