"""Bodies that fit no Go type, in ways that only an attacker sends."""

import json
from collections.abc import Iterator
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.encoding.codec import DecodeError, decode
from podstatus.kube.objects.pod import Pod
from podstatus.kube.patch.schema import POD
from podstatus.testing.apiserver import running_api_server
from tests.support.data.integer_fields import IntegerField, integer_fields
from tests.support.processes.api_servers import JSON_PATCH, MERGE, STRATEGIC, Client

PODS = "/api/v1/namespaces/default/pods"
POD_FIELDS = list(integer_fields(POD))
SPEC = {"containers": [{"name": "app", "image": "x"}]}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    with (
        running_api_server(tmp_path_factory.mktemp("server")) as server,
        closing(Client(server)) as client,
    ):
        yield client


@given(
    field=st.sampled_from(POD_FIELDS),
    literal=st.integers().map(lambda n: str(n + 2**63 if n >= 0 else n - 2**63 - 1))
    | st.sampled_from(["1.0", "1e3", "1e400", "-1e999999999", '"1"', "true", "[1]", "{}"]),
    directive=st.sampled_from(["", "Ignore", "Warn", "Strict"]),
)
def test_no_integer_beyond_its_type_is_taken(
    client: Client, field: IntegerField, literal: str, directive: str
) -> None:
    if field.path[-1] == "port" and literal == '"1"':
        return  # a port may be a name
    text = json.dumps(field.holding(1)).replace("1", literal)
    code, answer = client.create(f"{PODS}?fieldValidation={directive}", text)
    assert (code, answer["reason"]) == (400, "BadRequest")
    assert f"{field.go_field} of type" in answer["message"]


@pytest.mark.parametrize("kind", [STRATEGIC, MERGE, JSON_PATCH])
def test_a_deep_patch_to_what_does_not_fit_is_refused(client: Client, kind: str) -> None:
    client.create(PODS, {"metadata": {"name": "a"}, "spec": SPEC})
    for depth in (10, 300, 900, 100_000):
        deep = "[" * depth + "]" * depth
        sent = f'{{"spec": "x", "unknown": {deep}}}'
        if kind == JSON_PATCH:
            sent = (
                '[{"op": "add", "path": "/spec", "value": "x"}, '
                f'{{"op": "add", "path": "/unknown", "value": {deep}}}]'
            )
        code, answer = client.patch(f"{PODS}/a", sent, kind)
        assert code in (400, 422), answer["message"][:200]
    assert client.get(f"{PODS}/a")[0] == 200


def test_a_number_of_a_megabyte_is_not_repeated(client: Client) -> None:
    text = '{"metadata": {"name": "a"}, "spec": {"priority": ' + "9" * 2**20 + "}}"
    code, answer = client.create(PODS, text)
    assert (code, len(answer["message"]) < 500) == (400, True)


@pytest.mark.parametrize("kind", [STRATEGIC, MERGE])
def test_a_patch_of_a_megabyte_is_not_repeated(client: Client, kind: str) -> None:
    client.create(PODS, {"metadata": {"name": "large"}, "spec": SPEC})
    patch = {"spec": {"priority": "x", "nodeName": "x" * 2**20}}
    code, answer = client.patch(f"{PODS}/large", patch, kind)
    assert (code, len(answer["message"]) < 2**15) == (422, True)
    assert answer["message"].endswith("Go struct field PodSpec.spec.priority of type int32")


def test_an_exponent_that_upstream_does_not_survive_is_refused(client: Client) -> None:
    """kube-apiserver answers 504 after a minute."""
    for amount in ("1e999999999", "1e591", "-1e999999999"):
        spec = {"containers": [SPEC["containers"][0] | {"resources": {"limits": {"cpu": amount}}}]}
        code, answer = client.create(PODS, {"metadata": {"name": "a"}, "spec": spec})
        assert code == 400
        assert "needs over 600 digits" in answer["message"]


@pytest.mark.parametrize("amounts", [("1e590", "1n"), ("9e580", "1"), ("1e-600", "1e590")])
def test_sums_of_amounts_that_are_taken_can_be_worked_with(
    client: Client, amounts: tuple[str, str]
) -> None:
    containers = [
        {"name": f"c{index}", "image": "x", "resources": {"limits": {"memory": amount}}}
        for index, amount in enumerate(amounts)
    ]
    for more in ({}, {"resources": {"limits": {"memory": "1"}}}):
        body = {"metadata": {"generateName": "sum-"}, "spec": {"containers": containers, **more}}
        assert client.create(PODS, body)[0] in (201, 422)


@pytest.mark.parametrize("digits", [10, 19, 25, 5000])
def test_an_agent_reads_or_refuses_pods_of_a_server_without_bounds(digits: int) -> None:
    for field in POD_FIELDS:
        text = json.dumps(field.holding(1)).replace("1", "9" * digits)
        try:
            decode(text, Pod)
        except DecodeError:
            assert digits == 5000
