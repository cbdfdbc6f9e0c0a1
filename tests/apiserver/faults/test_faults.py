"""Fault injection, through a real socket."""

import http.client
import json
import re
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from podstatus.apiserver.faults.rules import Fault, consume, first_match, parse_faults
from podstatus.apiserver.http.errors import StatusError
from podstatus.apiserver.request.request_info import RequestInfo
from podstatus.testing.apiserver import ApiServerThread, running_api_server

FAULTS = "/podstatus/faults"
MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture(scope="module")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ApiServerThread]:
    with running_api_server(tmp_path_factory.mktemp("server")) as server:
        yield server


@pytest.fixture
def server(shared_server: ApiServerThread) -> Iterator[ApiServerThread]:
    yield shared_server
    shared_server.inject()
    shared_server.request("DELETE", MAPS)


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def create(server: ApiServerThread, name: str) -> dict[str, Any]:
    code, created = server.request("POST", MAPS, config_map(name))
    assert code == 201
    document: dict[str, Any] = created
    return document


def version_of(server: ApiServerThread) -> str:
    version: str = server.request("GET", MAPS)[1]["metadata"]["resourceVersion"]
    return version


@contextmanager
def watching(server: ApiServerThread, query: str = "") -> Iterator[Callable[[], str]]:
    """Open a watch; each call returns the next `TYPE name`, empty at its end."""
    connection = server.connect()
    headers = {"Authorization": f"Bearer {server.token}"}
    connection.request("GET", f"{MAPS}?watch=1{query}", headers=headers)
    response = connection.getresponse()
    assert response.status == 200

    def next_event() -> str:
        line = response.readline()
        if not line:
            return ""
        event = json.loads(line)
        about = event["object"]
        return f"{event['type']} {about.get('code') or about['metadata']['name']}"

    try:
        yield next_event
    finally:
        connection.close()


MATCHES: list[tuple[dict[str, Any], RequestInfo, bool]] = [
    ({}, RequestInfo(verb="get"), True),
    ({"verb": "get"}, RequestInfo(verb="get", resource="pods", name="web"), True),
    ({"verb": "get"}, RequestInfo(verb="list", resource="pods"), False),
    ({"resource": "pods"}, RequestInfo(verb="patch", resource="pods/status"), False),
    ({"resource": "pods/status"}, RequestInfo(verb="patch", resource="pods/status"), True),
    ({"namespace": "a"}, RequestInfo(verb="list", resource="pods"), False),
    ({"namespace": "a", "name": "x"}, RequestInfo(verb="get", namespace="a", name="x"), True),
    ({"namespace": "a", "name": "x"}, RequestInfo(verb="get", namespace="a", name="y"), False),
]


@pytest.mark.parametrize(("conditions", "request_info", "expected"), MATCHES)
def test_a_rule_matches_what_it_names(
    conditions: dict[str, Any], request_info: RequestInfo, expected: bool
) -> None:
    assert Fault(**conditions, code=500).matches(request_info) is expected


def test_the_first_rule_that_matches_decides_until_it_is_used_up() -> None:
    rules: tuple[Fault, ...] = (Fault(verb="get", code=500, times=2), Fault(code=503))
    request_info = RequestInfo(verb="get")
    used = []
    for _ in range(3):
        rule = first_match(rules, request_info)
        assert rule is not None
        used.append(rule.code)
        rules = consume(rules, rule)
    assert used == [500, 500, 503]
    assert rules == (Fault(code=503),)


BAD_RULES = [
    (b"no JSON", "send a JSON list"),
    (b'{"code": 500}', "Expected `array`"),
    (b'[{"code": 200}]', ">= 400"),
    (b'[{"verb": "read", "code": 500}]', "Invalid enum value 'read'"),
    (b'[{"cod": 500}]', "unknown field `cod`"),
    (b'[{"resource": "pod", "code": 500}]', "unknown resource 'pod'; use one of configmaps,"),
    (b'[{"verb": "get"}]', "the rule has no effect"),
    (b'[{"latency": 1, "retryAfter": 1}]', "retryAfter requires a code"),
    (b'[{"latency": -1}]', ">= 0"),
    (b'[{"code": 500, "action": "drop"}]', "action cut only, not with drop"),
    (b'[{"action": "stall"}]', 'add "verb": "watch"'),
    (b'[{"verb": "watch", "action": "stall", "times": 1}]', "omit times"),
    (b'[{"code": 500, "times": 0}]', ">= 1"),
]


@pytest.mark.parametrize(("body", "message"), BAD_RULES)
def test_a_rule_that_makes_no_sense_is_refused_with_what_is_expected(
    body: bytes, message: str
) -> None:
    with pytest.raises(StatusError) as caught:
        parse_faults(body)
    assert caught.value.code == 400
    assert message in caught.value.message


def test_the_rules_on_the_page_about_them_are_rules() -> None:
    page = Path(__file__).parents[3] / "docs" / "how-to" / "inject-faults.md"
    bodies = re.findall(r"-d '(.*)'$", page.read_text(), re.MULTILINE)
    assert len(bodies) > 5
    for body in bodies:
        assert parse_faults(body.encode())


def test_rules_are_shown_replaced_and_taken_away(server: ApiServerThread) -> None:
    rule = {"verb": "get", "resource": "pods", "code": 500, "times": 3}
    assert server.request("PUT", FAULTS, [rule]) == (200, [rule])
    server.request("GET", "/api/v1/namespaces/default/pods/web")
    assert server.request("GET", FAULTS) == (200, [rule | {"times": 2}])
    assert server.request("PUT", FAULTS, [{"code": 1}])[0] == 400
    assert server.request("GET", FAULTS) == (200, [rule | {"times": 2}])
    assert server.request("DELETE", FAULTS) == (200, [])
    assert server.request("POST", FAULTS, [])[0] == 405


def test_a_server_without_faults_has_no_such_page(tmp_path: Path) -> None:
    with running_api_server(tmp_path, faults=False) as server:
        connection = server.connect()
        connection.request("GET", FAULTS, headers={"Authorization": f"Bearer {server.token}"})
        assert connection.getresponse().status == 404
        connection.close()


def test_an_error_is_answered_as_often_as_asked_for(server: ApiServerThread) -> None:
    create(server, "a")
    server.inject({"verb": "get", "resource": "configmaps", "name": "a", "code": 409, "times": 2})
    codes = [server.request("GET", f"{MAPS}/a")[0] for _ in range(3)]
    assert codes == [409, 409, 200]


def test_retry_after_is_in_the_header_and_the_body(server: ApiServerThread) -> None:
    server.inject({"code": 429, "retryAfter": 7})
    connection = server.connect()
    connection.request("GET", "/version")
    response = connection.getresponse()
    status = json.loads(response.read())
    connection.close()
    assert (response.status, response.headers["Retry-After"]) == (429, "7")
    assert (status["reason"], status["details"]) == ("TooManyRequests", {"retryAfterSeconds": 7})


def test_latency_comes_before_the_answer(server: ApiServerThread) -> None:
    server.inject({"verb": "list", "latency": 0.2})
    began = time.monotonic()
    assert server.request("GET", MAPS)[0] == 200
    assert time.monotonic() - began >= 0.2


def test_a_dropped_request_did_nothing(server: ApiServerThread) -> None:
    server.inject({"verb": "create", "action": "drop"})
    with pytest.raises((OSError, http.client.HTTPException)):
        create(server, "a")
    assert server.get_object("configmaps", "a", "default") is None


def test_a_lost_answer_was_given_to_a_request_that_was_done(server: ApiServerThread) -> None:
    server.inject({"verb": "create", "action": "lose", "times": 1})
    with pytest.raises((OSError, http.client.HTTPException)):
        create(server, "a")
    assert server.get_object("configmaps", "a", "default") is not None


def test_a_stalled_watch_goes_on_when_the_rule_is_gone(server: ApiServerThread) -> None:
    with watching(server, f"&resourceVersion={version_of(server)}") as next_event:
        create(server, "a")
        assert next_event() == "ADDED a"
        server.inject({"verb": "watch", "resource": "configmaps", "action": "stall"})
        create(server, "b")
        with watching(server) as other:
            server.inject({"verb": "watch", "resource": "pods", "action": "cut"})
            assert [other(), other()] == ["ADDED a", "ADDED b"]
        assert next_event() == "ADDED b"


def test_a_stalled_watch_says_nothing(server: ApiServerThread) -> None:
    server.inject({"verb": "watch", "action": "stall"})
    create(server, "a")
    connection = server.connect()
    connection.timeout = 0.3
    connection.request(
        "GET", f"{MAPS}?watch=1", headers={"Authorization": f"Bearer {server.token}"}
    )
    response = connection.getresponse()
    assert response.status == 200
    with pytest.raises(TimeoutError):
        response.readline()
    connection.close()


def test_a_running_watch_is_cut(server: ApiServerThread) -> None:
    create(server, "a")
    with watching(server) as next_event:
        assert next_event() == "ADDED a"
        server.inject({"verb": "watch", "action": "cut", "times": 1})
        assert next_event() == ""
    with watching(server) as next_event:
        assert next_event() == "ADDED a"


def test_a_watch_can_be_cut_with_an_error(server: ApiServerThread) -> None:
    with watching(server, f"&resourceVersion={version_of(server)}") as next_event:
        server.inject({"verb": "watch", "action": "cut", "code": 410})
        assert [next_event(), next_event()] == ["ERROR 410", ""]
    with watching(server) as next_event:
        assert [next_event(), next_event()] == ["ERROR 410", ""]


def test_after_compaction_a_client_that_is_behind_has_to_list_again(
    server: ApiServerThread,
) -> None:
    behind = version_of(server)
    create(server, "a")
    server.inject({"action": "compact", "times": 1})
    with watching(server, f"&resourceVersion={behind}") as next_event:
        assert [next_event(), next_event()] == ["ERROR 410", ""]
    with watching(server, f"&resourceVersion={version_of(server)}") as next_event:
        create(server, "b")
        assert next_event() == "ADDED b"


def test_a_server_stops_while_a_watch_is_stalled(tmp_path: Path) -> None:
    with ExitStack() as after:
        with running_api_server(tmp_path) as server:
            create(server, "a")
            server.inject({"verb": "watch", "action": "stall"})
            next_event = after.enter_context(watching(server))
        assert next_event() == "ADDED a"
