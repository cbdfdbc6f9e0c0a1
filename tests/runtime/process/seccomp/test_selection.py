"""Selection of a container's seccomp filter."""

from typing import Any

import pytest
from msgspec import structs

from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.seccomp.selection import seccomp_program
from podstatus.runtime.process.seccomp.syscall_numbers import ARCHITECTURES
from podstatus.runtime.process.spec.security import HostSupport, credentials
from tests.runtime.process.seccomp.bpf_machine import ALLOW, ERRNO, returned
from tests.support.processes.process_pods import pod_of

ROOT = HostSupport(user=0, group=0, isolated=True)
PLAIN_ROOT = HostSupport(user=0, group=0, isolated=False)
USER = HostSupport(user=1001, group=1001, isolated=True)
PLAIN_USER = HostSupport(user=1001, group=1001, isolated=False)
ELSEWHERE = HostSupport(
    user=0,
    group=0,
    isolated=True,
    machine="riscv64",
    seccomp_unavailable="there is no profile for riscv64",
)
ANYBODY = (ROOT, PLAIN_ROOT, USER, PLAIN_USER)
DEFAULT, UNCONFINED = {"type": "RuntimeDefault"}, {"type": "Unconfined"}
LOCALHOST = {"type": "Localhost", "localhostProfile": "x"}


def program(can: HostSupport, own: object = None, of_pod: object = None, **context: Any) -> bytes:
    pod = pod_of(
        {"securityContext": {"seccompProfile": own, **context}},
        securityContext={"seccompProfile": of_pod},
    )
    container = (pod.spec.containers or ())[0]
    return seccomp_program(pod, container, credentials(pod, container, can), can)


def refusal(can: HostSupport, own: object = None, of_pod: object = None) -> str:
    with pytest.raises(CannotStartError) as refused:
        program(can, own, of_pod)
    assert refused.value.reason == "CreateContainerConfigError"
    return refused.value.message


@pytest.mark.parametrize("can", ANYBODY)
@pytest.mark.parametrize("own", [None, DEFAULT])
@pytest.mark.parametrize("of_pod", [None, DEFAULT])
def test_the_default_profile_is_on_whether_it_is_asked_for_or_not(
    can: HostSupport, own: object, of_pod: object
) -> None:
    assert program(can, own, of_pod)


@pytest.mark.parametrize("can", [PLAIN_ROOT, PLAIN_USER])
def test_what_says_so_is_not_confined(can: HostSupport) -> None:
    assert program(can, UNCONFINED) == b""
    assert program(can, None, UNCONFINED) == b""
    assert program(can, DEFAULT, UNCONFINED)
    assert program(can, UNCONFINED, DEFAULT) == b""


@pytest.mark.parametrize("can", [ROOT, USER, ELSEWHERE])
def test_a_container_that_is_isolated_cannot_be_unconfined(can: HostSupport) -> None:
    for own, of_pod in ((UNCONFINED, None), (None, UNCONFINED), (UNCONFINED, DEFAULT)):
        message = refusal(can, own, of_pod)
        assert message.startswith('securityContext.seccompProfile.type: "Unconfined" is not ')
        assert "remove it, or set RuntimeDefault" in message
        assert "--allow-unconfined-seccomp" in message


@pytest.mark.parametrize("can", [ROOT, USER, ELSEWHERE])
def test_the_owner_of_the_node_may_allow_it(can: HostSupport) -> None:
    allowing = structs.replace(can, allows_unconfined=True)
    assert program(allowing, UNCONFINED) == b""
    assert program(allowing, None, UNCONFINED) == b""
    assert program(allowing) == program(can)


@pytest.mark.parametrize("can", ANYBODY)
def test_there_are_no_profiles_of_the_machine(can: HostSupport) -> None:
    assert "loads no profiles" in refusal(can, LOCALHOST)
    assert '"Odd" is not supported' in refusal(can, None, {"type": "Odd"})


def test_on_a_machine_without_a_profile_only_who_asks_for_it_is_refused() -> None:
    assert program(ELSEWHERE) == b""
    assert "there is no profile for riscv64" in refusal(ELSEWHERE, DEFAULT)


def test_the_profile_knows_the_capabilities() -> None:
    x86 = ARCHITECTURES["x86_64"]

    def chroot(capabilities: dict[str, Any]) -> int:
        filter_program = program(ROOT, capabilities=capabilities)
        return returned(filter_program, x86.audit, x86.numbers["chroot"]) & ~0xFF

    assert chroot({}) == ERRNO
    assert chroot({"add": ["SYS_CHROOT"]}) == ALLOW
