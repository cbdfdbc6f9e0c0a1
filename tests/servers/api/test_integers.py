"""What fits the Go types of an object is stored, all else is refused with the field."""

import json
import re

import pytest

from podstatus.kube.patch.schema import Schema, schema_of
from tests.servers.api.refusals import handled, told, unmarshal
from tests.servers.pods import causes, pod, pods, refusal
from tests.support.data.integer_fields import integer_fields
from tests.support.processes.api_servers import Document, Server

LEASES = "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
IN_NAMESPACE = "/api/v1/namespaces/{namespace}"
NO_QUANTITY = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)
KINDS = {
    "pods": (f"{IN_NAMESPACE}/pods", "Pod"),
    "events": (f"{IN_NAMESPACE}/events", "Event"),
    "configmaps": (f"{IN_NAMESPACE}/configmaps", "ConfigMap"),
    "secrets": (f"{IN_NAMESPACE}/secrets", "Secret"),
    "serviceaccounts": (f"{IN_NAMESPACE}/serviceaccounts", "ServiceAccount"),
    "leases": (LEASES, "Lease"),
    "nodes": ("/api/v1/nodes", "Node"),
    "namespaces": ("/api/v1/namespaces", "Namespace"),
}


def container(fields: str) -> str:
    """A pod whose container has these fields, as text: numbers stay as they are spelled."""
    return (
        '{"metadata": {"name": "a"}, "spec": {"containers": '
        f'[{{"name": "app", "image": "x:v1", {fields}}}]}}}}'
    )


@pytest.mark.parametrize("kind", KINDS)
def test_every_integer_has_the_bounds_of_its_go_type(
    server: Server, namespace: str, kind: str
) -> None:
    path, type_ = KINDS[kind]
    for field in integer_fields(schema_of(type_)):
        for value in (2 ** (field.bits - 1), -(2 ** (field.bits - 1)) - 1):
            answer = server.client.create(path.format(namespace=namespace), field.holding(value))
            assert told(answer) == handled(
                type_,
                f"json: cannot unmarshal number {value} into Go struct field {field.go_field} "
                f"of type {field.go_type}",
            )
            assert refusal(answer) == (400, "BadRequest")


def test_the_schemas_have_the_integers_of_the_published_schemas(server: Server) -> None:
    code, published = server.client.get("/openapi/v2")
    assert code == 200
    checked = 0
    for name, definition in published["definitions"].items():
        schema = _schema(name)
        for key, below in definition.get("properties", {}).items():
            if schema is not None and (width := _width(below)):
                assert schema.fields[key].schema.type.strip("[]") == width, f"{name}.{key}"
                checked += 1
    assert checked >= 50


def _schema(definition: str) -> Schema | None:
    """Ours for a definition of the groups that are served, if we have it."""
    served = re.fullmatch(
        r"io\.k8s\.(?:api\.(?:core|coordination)|apimachinery\.pkg\.apis\.meta)\.v1\.(\w+)",
        definition,
    )
    schema = Schema(type=served[1] if served else "")
    return schema if schema.fields else None


def _width(published: Document) -> str:
    published = published.get("items", published)
    return str(published.get("format", "")) if published.get("type") == "integer" else ""


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ("1.0", "number 1.0"),
        ("1e2", "number 1e2"),
        ("1.5", "number 1.5"),
        ("1e400", "number 1e400"),
        ("1099511627776", "number 1099511627776"),
        ('"5"', "string"),
        ("true", "bool"),
        ("[]", "array"),
        ("{}", "object"),
    ],
)
def test_what_is_no_integer_is_refused_as_it_is_spelled(
    server: Server, namespace: str, value: str, what: str
) -> None:
    sent = container(f'"livenessProbe": {{"periodSeconds": {value}}}')
    assert told(server.client.create(pods(namespace), sent)) == handled(
        "Pod",
        f"json: cannot unmarshal {what} into Go struct field "
        "Probe.spec.containers.livenessProbe.periodSeconds of type int32",
    )


@pytest.mark.parametrize("value", ["null", "-0", "2147483647"])
def test_what_is_an_integer_is_stored(server: Server, namespace: str, value: str) -> None:
    probe = f'{{"exec": {{"command": ["x"]}}, "initialDelaySeconds": {value}}}'
    code, stored = server.client.create(pods(namespace), container(f'"livenessProbe": {probe}'))
    assert code == 201, stored
    expected = int(json.loads(value) or 0)
    found = stored["spec"]["containers"][0]["livenessProbe"]
    assert found.get("initialDelaySeconds", 0) == expected


@pytest.mark.parametrize(
    ("fields", "what", "field", "go_type"),
    [
        ('"imagePullPolicy": 1', "number", "Container.*.imagePullPolicy", "v1.PullPolicy"),
        ('"command": [1]', "number", "Container.*.command", "string"),
        ('"ports": {}', "object", "Container.*.ports", "[]v1.ContainerPort"),
        ('"ports": ["x"]', "string", "Container.*.ports", "v1.ContainerPort"),
        ('"stdin": "true"', "string", "Container.*.stdin", "bool"),
        (
            '"resources": {"limits": []}',
            "array",
            "ResourceRequirements.*.resources.limits",
            "v1.ResourceList",
        ),
        (
            '"securityContext": {"capabilities": {"add": [5]}}',
            "number",
            "Capabilities.*.securityContext.capabilities.add",
            "v1.Capability",
        ),
        (
            '"livenessProbe": {"httpGet": {"port": 1.5}}',
            "number 1.5",
            "HTTPGetAction.*.livenessProbe.ProbeHandler.httpGet.port",
            "int32",
        ),
        (
            '"livenessProbe": {"httpGet": {"port": true}}',
            "bool",
            "HTTPGetAction.*.livenessProbe.ProbeHandler.httpGet.port",
            "int32",
        ),
        (
            '"envFrom": [{"configMapRef": {"name": 5}}]',
            "number",
            "ConfigMapEnvSource.*.envFrom.configMapRef.LocalObjectReference.name",
            "string",
        ),
        (
            '"livenessProbe": {"periodSeconds": 1.5, "periodSeconds": 1}',
            "number 1.5",
            "Probe.*.livenessProbe.periodSeconds",
            "int32",
        ),
        ('"tty": 1, "stdin": 2', "number", "Container.*.tty", "bool"),
    ],
    ids=lambda text: text[:30],
)
def test_wrong_kinds_of_values_are_refused_with_the_field(
    server: Server, namespace: str, fields: str, what: str, field: str, go_type: str
) -> None:
    answer = server.client.create(pods(namespace), container(fields))
    field = field.replace("*", "spec.containers")
    assert told(answer) == handled("Pod", unmarshal(what, field, go_type))


@pytest.mark.parametrize(
    ("path", "sent", "kind", "what", "field", "go_type"),
    [
        (
            "pods",
            {"metadata": {"labels": {"a": 1}}},
            "Pod",
            "number",
            "ObjectMeta.metadata.labels",
            "string",
        ),
        ("pods", {"metadata": "x"}, "Pod", "string", "Pod.metadata", "v1.ObjectMeta"),
        (
            "pods",
            {"metadata": {"creationTimestamp": 5}},
            "Pod",
            "number",
            "ObjectMeta.metadata.creationTimestamp",
            "string",
        ),
        (
            "pods",
            {"metadata": {"ownerReferences": [{"uid": 5}]}},
            "Pod",
            "number",
            "OwnerReference.metadata.ownerReferences.uid",
            "types.UID",
        ),
        ("configmaps", {"data": {"a": 1}}, "ConfigMap", "number", "ConfigMap.data", "string"),
        (
            "configmaps",
            {"binaryData": {"a": 1}},
            "ConfigMap",
            "number",
            "ConfigMap.binaryData",
            "[]uint8",
        ),
        (
            "serviceaccounts",
            {"automountServiceAccountToken": 1},
            "ServiceAccount",
            "number",
            "ServiceAccount.automountServiceAccountToken",
            "bool",
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_wrong_kinds_are_refused_in_all_objects(
    server: Server,
    namespace: str,
    path: str,
    sent: Document,
    kind: str,
    what: str,
    field: str,
    go_type: str,
) -> None:
    answer = server.client.create(f"/api/v1/namespaces/{namespace}/{path}", sent)
    assert told(answer) == handled(kind, unmarshal(what, field, go_type))


@pytest.mark.parametrize(
    ("key", "value", "what"), [("kind", 5, "number"), ("apiVersion", {}, "object")]
)
def test_a_kind_that_is_no_text_is_not_recognized(
    server: Server, namespace: str, key: str, value: object, what: str
) -> None:
    answer = server.client.create(pods(namespace), {**pod("a"), key: value})
    assert told(answer) == (
        400,
        (
            "the object provided is unrecognized (must be of type Pod): couldn't get "
            f"version/kind; json parse error: {unmarshal(what, f'.{key}', 'string')} "
            '({"metadata": {"name": "a"}, "s ...)'
        ),
    )


def test_numbers_in_unknown_fields_are_dropped(server: Server, namespace: str) -> None:
    code, stored = server.client.create(pods(namespace), container('"livenesProbe": {"a": 1e400}'))
    assert code == 201, stored
    assert "livenesProbe" not in stored["spec"]["containers"][0]


@pytest.mark.parametrize(
    "value",
    ["1", "0.5", "1e3", '"1 "', '" 1"', '"+1"', '".5"', '"5."', "null", "99999999999999999999"],
)
def test_quantities_may_be_numbers_and_have_spaces_around(
    server: Server, namespace: str, value: str
) -> None:
    sent = container(f'"resources": {{"requests": {{"cpu": {value}}}}}')
    code, stored = server.client.create(pods(namespace), sent)
    assert code == 201, stored


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ('"1_000"', ""), ('"1 Gi"', ""), ('"1\\t"', ""), ('""', ""), ("true", ""), ("[]", ""),
        ("{}", ""), ('"\N{FULLWIDTH DIGIT ONE}"', ""),
        ('"1e"', "unable to parse quantity's suffix"),
        ('"1KK"', "unable to parse quantity's suffix"),
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused(
    server: Server, namespace: str, value: str, why: str
) -> None:
    sent = container(f'"resources": {{"requests": {{"cpu": {value}}}}}')
    assert told(server.client.create(pods(namespace), sent)) == handled("Pod", why or NO_QUANTITY)


@pytest.mark.parametrize(
    ("rules", "codes", "refused"),
    [
        (1, 255, ""),
        (1, 256, "restartPolicyRules[0].exitCodes.values: Too many: 256"),
        (1, 300, "restartPolicyRules[0].exitCodes.values: Too many: 300"),
        (20, 1, ""),
        (21, 1, "restartPolicyRules: Too many: 21"),
    ],
)
def test_restart_rules_are_bounded(
    server: Server, namespace: str, rules: int, codes: int, refused: str
) -> None:
    rule = {"action": "Restart", "exitCodes": {"operator": "In", "values": list(range(codes))}}
    body = pod("a")
    body["spec"]["containers"][0] |= {
        "restartPolicy": "Never",
        "restartPolicyRules": [rule] * rules,
    }
    code, answer = server.client.create(pods(namespace), body)
    if not refused:
        assert code == 201, answer
        return
    limit = 255 if "values" in refused else 20
    why = f"spec.containers[0].{refused}: must have at most {limit} items"
    assert (code, answer["message"]) == (422, f'Pod "a" is invalid: {why}')
    assert causes((code, answer)) == [f"spec.containers[0].{refused.partition(': ')[0]}"]
