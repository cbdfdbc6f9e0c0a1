from typing import Any

import pytest

from podstatus.kube.expansion import ExecBudget
from podstatus.kube.objects.cluster import ConfigMap, Secret
from podstatus.kube.scalars.quantity import Quantity
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.spec.downward_api import DownwardContext
from podstatus.runtime.process.spec.environment import (
    ReferencedObjects,
    declared_environment,
    full_environment,
    referenced_names,
)
from tests.support.processes.process_pods import UID, pod_of

AROUND = DownwardContext(
    ["10.0.0.1", "fd00::1"],
    {"cpu": Quantity("3500m"), "memory": Quantity("8Gi"), "ephemeral-storage": Quantity("1G")},
)
OBJECTS = ReferencedObjects(
    config_maps={"c": ConfigMap(data={"k": "v$(X)", "odd.name-1": "o"}), "gone": None},
    secrets={
        "s": Secret(data={"pw": "eCc=", "bytes": "/w==", "zero": "AA==", "broken": "?"}),
        "plain": Secret(data={"pw": "eCc="}),
        "gone": None,
    },
)


def environment(container: dict[str, Any], **spec: Any) -> dict[str, str]:
    pod = pod_of(container, **spec)
    first = (pod.spec.containers or ())[0]
    return declared_environment(pod, first, OBJECTS, AROUND, ExecBudget(), {})


def value_of(source: dict[str, Any], container: dict[str, Any] | None = None, **spec: Any) -> str:
    env = [{"name": "V", "valueFrom": source}]
    return environment({"env": env, **(container or {})}, **spec)["V"]


def refusal(container: dict[str, Any]) -> str:
    with pytest.raises(CannotStartError) as refused:
        environment(container)
    assert refused.value.reason == "CreateContainerConfigError"
    return refused.value.message


def test_variables_refer_to_those_before_them() -> None:
    env = [
        {"name": "LATE", "value": "$(A)"},
        {"name": "A", "value": "1"},
        {"name": "B", "value": "$(A)-$(C)-$$(A)"},
        {"name": "A", "value": "$(A)2"},
        {"name": "EMPTY"},
    ]
    expected = {"LATE": "$(A)", "A": "12", "B": "1-$(C)-$(A)", "EMPTY": ""}
    assert environment({"env": env}) == expected


def test_whole_objects_come_first_and_are_not_expanded() -> None:
    container = {
        "envFrom": [
            {"configMapRef": {"name": "c"}, "prefix": "P_"},
            {"secretRef": {"name": "plain"}},
            {"configMapRef": {"name": "gone", "optional": True}},
        ],
        "env": [{"name": "pw", "value": "mine"}, {"name": "X", "value": "$(P_k)"}],
    }
    expected = {"P_k": "v$(X)", "P_odd.name-1": "o", "pw": "mine", "X": "v$(X)"}
    assert environment(container) == expected


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("metadata.name", "p"),
        ("metadata.namespace", "ns"),
        ("metadata.uid", UID),
        ("metadata.labels", 'app="shop"'),
        ("metadata.annotations", 'note="a b"\nother="say \\"hi\\"\\n"'),
        ("metadata.labels['app']", "shop"),
        ("metadata.labels['none']", ""),
        ("metadata.annotations['note']", "a b"),
        ("spec.nodeName", "node-1"),
        ("spec.host", "node-1"),
        ("spec.serviceAccountName", "runner"),
        ("status.hostIP", "10.0.0.1"),
        ("status.podIP", "10.0.0.1"),
        ("status.hostIPs", "10.0.0.1,fd00::1"),
        ("status.podIPs", "10.0.0.1,fd00::1"),
    ],
)
def test_fields_of_the_pod(path: str, value: str) -> None:
    assert value_of({"fieldRef": {"fieldPath": path}}) == value


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("spec.containers", "field label not supported: spec.containers"),
        ("metadata.finalizers", "unsupported fieldPath: metadata.finalizers"),
        ("status.phase", "unsupported fieldPath: status.phase"),
        ("spec.nodeName['x']", "field label does not support subscript: spec.nodeName['x']"),
    ],
)
def test_other_fields_are_refused_in_upstreams_words(path: str, message: str) -> None:
    env = [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
    assert refusal({"env": env}) == message


def test_a_key_that_is_none_is_refused() -> None:
    path = "metadata.labels['a b']"
    env = [{"name": "V", "valueFrom": {"fieldRef": {"fieldPath": path}}}]
    assert refusal({"env": env}).startswith(f"invalid key subscript in {path}: ")


@pytest.mark.parametrize(
    ("resource", "divisor", "value"),
    [
        ("limits.cpu", "0", "2"),
        ("limits.cpu", "1m", "1500"),
        ("requests.cpu", "1", "1"),
        ("limits.memory", "1", "8589934592"),
        ("limits.memory", "1Mi", "8192"),
        ("requests.memory", "1Ki", "3"),
        ("limits.ephemeral-storage", "1M", "1000"),
        ("requests.ephemeral-storage", "1", "0"),
        ("limits.hugepages-2Mi", "1Mi", "4"),
    ],
)
def test_resources_are_counted_in_divisors_and_rounded_up(
    resource: str, divisor: str, value: str
) -> None:
    resources = {
        "limits": {"cpu": "1500m", "hugepages-2Mi": "4Mi"},
        "requests": {"cpu": "100m", "memory": "2049"},
    }
    source = {"resourceFieldRef": {"resource": resource, "divisor": divisor}}
    assert value_of(source, {"resources": resources}) == value


def test_a_missing_limit_defaults_to_the_node_or_the_pod() -> None:
    source = {"resourceFieldRef": {"resource": "limits.cpu"}}
    assert value_of(source) == "4"
    assert value_of(source, resources={"limits": {"cpu": "2"}}) == "2"


def test_resources_of_another_container() -> None:
    other = {"name": "i", "resources": {"limits": {"cpu": "7"}}}
    source = {"resourceFieldRef": {"resource": "limits.cpu", "containerName": "i"}}
    assert value_of(source, initContainers=[other]) == "7"


def _key(kind: str, name: str, key: str, **more: object) -> dict[str, Any]:
    source = {f"{kind}KeyRef": {"name": name, "key": key, **more}}
    return {"env": [{"name": "V", "valueFrom": source}]}


def test_keys_of_objects() -> None:
    assert environment(_key("configMap", "c", "k")) == {"V": "v$(X)"}
    assert environment(_key("secret", "s", "pw")) == {"V": "x'"}


@pytest.mark.parametrize("kind", ["configMap", "secret"])
@pytest.mark.parametrize(("name", "key"), [("gone", "k"), ("c", "none"), ("s", "none")])
def test_what_is_optional_is_left_out(kind: str, name: str, key: str) -> None:
    if (kind, name) not in (("configMap", "s"), ("secret", "c")):
        assert environment(_key(kind, name, key, optional=True)) == {}


@pytest.mark.parametrize(
    ("container", "message"),
    [
        (_key("configMap", "gone", "k"), 'configmap "gone" not found'),
        (_key("secret", "gone", "k"), 'secret "gone" not found'),
        (_key("configMap", "c", "none"), "couldn't find key none in ConfigMap ns/c"),
        (_key("secret", "s", "none"), "couldn't find key none in Secret ns/s"),
        ({"envFrom": [{"configMapRef": {"name": "gone"}}]}, 'configmap "gone" not found'),
        ({"envFrom": [{"secretRef": {"name": "gone"}}]}, 'secret "gone" not found'),
    ],
)
def test_missing_objects_are_reported_in_upstreams_words(
    container: dict[str, Any], message: str
) -> None:
    assert refusal(container) == message


@pytest.mark.parametrize(
    ("container", "part"),
    [
        (_key("secret", "s", "bytes"), "is not UTF-8"),
        (_key("secret", "s", "zero"), "contains a NUL"),
        (_key("secret", "s", "broken"), "is not base64"),
        ({"env": [{"name": "A=B", "value": "x"}]}, "invalid environment variable name"),
        ({"env": [{"name": "", "value": "x"}]}, "invalid environment variable name"),
        (
            {"env": [{"name": "V", "valueFrom": {"fileKeyRef": {"path": "f", "key": "k"}}}]},
            "fileKeyRef",
        ),
    ],
)
def test_what_no_process_can_be_given_is_refused(container: dict[str, Any], part: str) -> None:
    assert part in refusal(container)


def doubling(count: int) -> dict[str, Any]:
    """A short spec whose expansion has 2 ** count bytes."""
    first = {"name": "A0", "value": "x"}
    return {
        "env": [
            first,
            *({"name": f"A{n}", "value": f"$(A{n - 1})" * 2} for n in range(1, count + 1)),
        ]
    }


def test_doubled_values_are_refused_before_they_are_built() -> None:
    message = refusal(doubling(200))
    assert message.startswith('environment variable "A17": has more than 131072 bytes')


def test_a_value_as_long_as_the_kernel_takes_is_passed_on() -> None:
    assert len(environment(doubling(16))["A16"]) == 2**16


@pytest.mark.parametrize("names", [[f"B{n}" for n in range(10_000)], ["B"] * 10_000])
def test_all_variables_together_are_bounded(names: list[str]) -> None:
    big = {"name": "A", "value": "x" * 100_000}
    copies = [{"name": name, "value": "$(A)"} for name in names]
    message = refusal({"env": [big, *copies]})
    assert "variables and arguments have more than" in message
    assert names[19] in message


def test_whole_objects_are_bounded_too() -> None:
    pod = pod_of({"envFrom": [{"configMapRef": {"name": "big"}}]})
    data = {f"k{n}": "x" * 1000 for n in range(3000)}
    objects = ReferencedObjects(config_maps={"big": ConfigMap(data=data)})
    first = (pod.spec.containers or ())[0]
    with pytest.raises(CannotStartError, match="variables and arguments have more than"):
        declared_environment(pod, first, objects, AROUND, ExecBudget(), {})


def with_services(container: dict[str, Any], services: dict[str, str]) -> dict[str, str]:
    pod = pod_of(container)
    first = (pod.spec.containers or ())[0]
    return declared_environment(pod, first, OBJECTS, AROUND, ExecBudget(), services)


def test_variables_refer_to_services_and_override_them() -> None:
    env = [
        {"name": "URL", "value": "http://$(WEB_SERVICE_HOST):$(WEB_SERVICE_PORT)"},
        {"name": "WEB_SERVICE_HOST", "value": "[$(WEB_SERVICE_HOST)]"},
        {"name": "LATE", "value": "$(WEB_SERVICE_HOST)"},
    ]
    services = {"WEB_SERVICE_HOST": "10.0.0.1", "WEB_SERVICE_PORT": "80"}
    assert with_services({"env": env}, services) == {
        "URL": "http://10.0.0.1:80",
        "WEB_SERVICE_HOST": "[10.0.0.1]",
        "LATE": "[10.0.0.1]",
        "WEB_SERVICE_PORT": "80",
    }


def test_more_services_than_a_process_can_have_are_refused_with_the_remedy() -> None:
    services = {f"S{n}_SERVICE_HOST": "1" * 1000 for n in range(3000)}
    with pytest.raises(CannotStartError, match="set enableServiceLinks: false"):
        with_services({}, services)


def test_a_refusal_never_shows_a_secret() -> None:
    assert "?" not in refusal(_key("secret", "s", "broken"))


def test_every_object_that_is_needed_is_named() -> None:
    container = {
        "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}],
        "env": [
            {"name": "X", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
            {"name": "Y", "valueFrom": {"secretKeyRef": {"name": "d", "key": "k"}}},
        ],
    }
    pod = pod_of(container)
    assert referenced_names((pod.spec.containers or ())[0]) == ({"a", "c"}, {"b", "d"})


def test_declared_variables_win_over_ours() -> None:
    env = full_environment({"HOME": "/data", "X": "1"}, hostname="p", home="/tmp", tty=False)
    assert env["HOME"] == "/data"
    assert set(env) == {"PATH", "HOME", "HOSTNAME", "X"}


@pytest.mark.parametrize(("declared", "term"), [({}, "xterm"), ({"TERM": "dumb"}, "dumb")])
def test_a_container_with_a_terminal_has_its_type(declared: dict[str, str], term: str) -> None:
    env = full_environment(declared, hostname="p", home="/tmp", tty=True)
    assert env["TERM"] == term
