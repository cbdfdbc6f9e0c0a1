"""The messages of CRI are those of api.proto, byte for byte.

`messages.jsonl` has what protobuf 7.36 wrote for the descriptor of api.proto, deterministically.
"""

import json
import os
import typing
from pathlib import Path
from types import ModuleType

import msgspec
import pytest
from tools import cri_field_numbers

from podstatus.runtime.cri.api import containers, field_numbers, images, sandboxes, status
from podstatus.runtime.cri.api import resources as res
from podstatus.runtime.cri.api import security as sec
from podstatus.runtime.cri.api.codec import CODEC, CriMessage, enum_number

LINES = (Path(__file__).parent / "messages.jsonl").read_text().splitlines()
BODIES = {record["message"]: bytes.fromhex(record["body"]) for record in map(json.loads, LINES)}
MESSAGES: list[CriMessage] = [
    containers.CriContainerStatus(
        id="c1",
        metadata=containers.CriContainerMetadata(name="app", attempt=7),
        state=containers.CONTAINER_EXITED,
        created_at=1_700_000_000_000_000_001,
        finished_at=1_700_000_001_000_000_000,
        exit_code=-1,
        reason="Error",
        message="naïve ✓",
        labels={"a": "", "": "b"},
        mounts=(
            containers.CriMount(
                container_path="/dev/termination-log", host_path="/x", readonly=True
            ),
            containers.CriMount(),
        ),
        resources=res.CriContainerResources(
            linux=res.CriLinuxContainerResources(cpu_quota=-1, cpu_shares=2, oom_score_adj=-997)
        ),
        user=containers.CriContainerUser(
            linux=containers.CriLinuxContainerUser(gid=1, supplemental_groups=(0, 5, 2**32))
        ),
    ),
    sandboxes.CriPodSandboxConfig(
        metadata=sandboxes.CriPodSandboxMetadata(
            name="p", uid="u", namespace="n", attempt=2**32 - 1
        ),
        hostname="h",
        dns_config=sandboxes.CriDNSConfig(servers=("10.0.0.10", ""), options=("ndots:5",)),
        port_mappings=(
            sandboxes.CriPortMapping(
                protocol=1, container_port=53, host_port=30053, host_ip="127.0.0.1"
            ),
        ),
        linux=sandboxes.CriLinuxPodSandboxConfig(
            cgroup_parent="/kubepods",
            security_context=sec.CriLinuxSandboxSecurityContext(
                namespace_options=sec.CriNamespaceOption(network=2, pid=1, ipc=2),
                run_as_user=sec.CriInt64Value(),
                supplemental_groups=(-1,),
                seccomp=sec.CriSecurityProfile(profile_type=sec.PROFILE_UNCONFINED),
            ),
            sysctls={"kernel.shm_rmid_forced": "1"},
        ),
    ),
    containers.CriExecSyncResponse(stdout=b"\0\xff\x80a", exit_code=137),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_a_message_is_what_protobuf_writes(message: CriMessage) -> None:
    body = BODIES[type(message).__name__.removeprefix("Cri")]
    assert CODEC.decode(body, type(message)) == message
    assert CODEC.encode(message) == body


@pytest.mark.parametrize("module", [containers, images, res, sandboxes, sec, status])
def test_every_struct_fits_the_table(module: ModuleType) -> None:
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type)]
    messages = [kind for kind in kinds if issubclass(kind, CriMessage) and kind is not CriMessage]
    assert messages
    for kind in messages:
        assert CODEC.decode(CODEC.encode(kind()), kind) == kind()


def test_constants_are_the_numbers_of_the_enums() -> None:
    assert enum_number("ContainerState", "CONTAINER_EXITED") == containers.CONTAINER_EXITED
    assert enum_number("ContainerState", "CONTAINER_UNKNOWN") == containers.CONTAINER_UNKNOWN
    assert enum_number("PodSandboxState", "SANDBOX_READY") == sandboxes.SANDBOX_READY
    assert enum_number("NamespaceMode", "TARGET") == sec.NAMESPACE_TARGET
    assert enum_number("ProfileType", "Localhost") == sec.PROFILE_LOCALHOST
    assert enum_number("Signal", "SIGRTMAX") == 65


def test_credentials_have_no_text() -> None:
    auth = images.CriAuthConfig(username="u", password="hunter2", registry_token="t0ken")  # noqa: S106
    shown = repr(images.CriPullImageRequest(auth=auth))
    assert not {"hunter2", "t0ken"} & set(shown.replace("'", " ").split())


def test_the_table_is_written_from_the_text_of_api_proto() -> None:
    text = cri_field_numbers.module_text(
        """
        message Empty {}
        message A {
            enum Mode { On = 0; Off = 1; }
            // reserved = 9;
            map<string,string> labels = 1;
            repeated B items = 2;
            Mode mode = 3;
            string old = 4 [deprecated=true];
            string password = 5 [debug_redact = true];
            WindowsB windows = 6;
        }
        message B {
            int64 n = 1;
        }
        message WindowsB {
            int64 n = 1;
        }
        """.replace("\n        ", "\n")
    )
    tables: dict[str, typing.Any] = {}
    exec(text, tables)  # noqa: S102 - the module that the tool writes
    assert tables["MESSAGES"].strip().splitlines() == [
        "A: 1=labels:{str} 2=items:[B] 3=mode:enum 5=password",
        "B: 1=n:int64",
    ]
    assert tables["ENUMS"].strip() == "Mode: 0=On 1=Off"


def test_the_table_is_current() -> None:
    cache = Path(os.environ.get("GOMODCACHE", Path.home() / "go/pkg/mod"))
    proto = cache / "k8s.io/cri-api@v0.36.4/pkg/apis/runtime/v1/api.proto"
    if not proto.exists():
        pytest.skip("needs cri-api v0.36.4 in the module cache of Go: make e2e-parts")
    assert Path(field_numbers.__file__).read_text() == cri_field_numbers.module_text(
        proto.read_text()
    )


def test_a_list_leaves_its_items_encoded() -> None:
    container = containers.CriContainer(id="c1", labels={"a": "b"})
    encoded = b"\x0a" + bytes([len(CODEC.encode(container))]) + CODEC.encode(container)
    listed = CODEC.decode(encoded, containers.CriListContainersResponse)
    assert [CODEC.decode(item, containers.CriContainer) for item in listed.containers] == [
        container
    ]
    assert msgspec.structs.asdict(listed)["containers"] == (CODEC.encode(container),)
