"""What a container wrote, by way of the API server: asked of its node, streamed."""

from pathlib import Path
from typing import Any

import pytest

from tests.servers.streams.node_scene import NodeScene
from tests.support.processes.stand_in_node import make_node_certificates, running_node, wait_until

pytestmark = pytest.mark.usefixtures("key")


@pytest.fixture
def key(scene: NodeScene) -> str:
    """A pod that wrote three lines."""
    key = scene.add_pod()
    scene.thread.write(key, "one", "two", "three")
    return key


def test_a_log_is_what_the_node_has(scene: NodeScene, key: str) -> None:
    assert scene.log() == (200, "one\ntwo\nthree\n")
    [asked] = scene.node.asked
    assert (asked.method, asked.path) == ("GET", f"/containerLogs/{key}")


def test_nodes_see_whose_question_it_is(scene: NodeScene) -> None:
    scene.log()
    assert scene.node.asked[0].user == "podstatus-apiserver"


@pytest.mark.parametrize(
    ("query", "asked"),
    [
        ({}, {}),
        ({"tailLines": "1"}, {"tailLines": "1"}),
        ({"tailLines": "0"}, {"tailLines": "0"}),
        ({"previous": ""}, {"previous": "true"}),
        ({"previous": "yes", "timestamps": "0"}, {"previous": "true"}),
        ({"timestamps": "true", "limitBytes": "7"}, {"timestamps": "true", "limitBytes": "7"}),
        ({"sinceSeconds": "5"}, {"sinceSeconds": "5"}),
        ({"sinceTime": "2024-01-01T01:00:00.5+01:00"}, {"sinceTime": "2024-01-01T00:00:00Z"}),
        ({"container": "main", "pretty": "true", "nonsense": "1"}, {}),
    ],
)
def test_the_node_is_asked_for_the_part_that_is_wanted(
    scene: NodeScene, query: dict[str, str], asked: dict[str, str]
) -> None:
    code, _ = scene.log(**query)
    assert code == 200
    assert dict(scene.node.asked[0].query) == asked


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"tailLines": "-1"}, "tailLines: Invalid value: -1: must be greater than or equal to 0"),
        ({"limitBytes": "0"}, "limitBytes: Invalid value: 0: must be greater than 0"),
        ({"sinceSeconds": "0"}, "sinceSeconds: Invalid value: 0: must be greater than 0"),
        ({"stream": "Stdout"}, "stream: Forbidden: may not be specified"),
        (
            {"sinceSeconds": "1", "sinceTime": "2024-01-01T00:00:00Z"},
            "[]: Forbidden: at most one of `sinceTime` or `sinceSeconds` may be specified",
        ),
        (
            {"tailLines": "-5", "limitBytes": "-1"},
            (
                "[tailLines: Invalid value: -5: must be greater than or equal to 0, "
                "limitBytes: Invalid value: -1: must be greater than 0]"
            ),
        ),
    ],
)
def test_options_that_break_rules_are_refused(
    scene: NodeScene, query: dict[str, str], message: str
) -> None:
    code, status = scene.log(**query)
    assert isinstance(status, dict)
    assert (code, status["reason"]) == (422, "Invalid")
    assert status["message"] == f'PodLogOptions "web" is invalid: {message}'
    assert not scene.node.asked


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"tailLines": "x"}, 'strconv.ParseInt: parsing "x": invalid syntax'),
        ({"tailLines": ""}, 'strconv.ParseInt: parsing "": invalid syntax'),
        ({"container": "other"}, "container other is not valid for pod web"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    scene: NodeScene, query: dict[str, str], message: str
) -> None:
    code, status = scene.log(**query)
    assert isinstance(status, dict)
    assert (code, status["reason"], status["message"]) == (400, "BadRequest", message)


def test_a_container_must_be_named_where_there_are_several(scene: NodeScene) -> None:
    scene.add_pod("two", containers=("a", "b"))
    code, status = scene.log("two")
    assert isinstance(status, dict)
    told = "a container name must be specified for pod two, choose one of: [a b]"
    assert (code, status["message"]) == (400, told)
    assert scene.log("two", container="b")[0] == 200


def test_a_pod_without_a_node_has_no_log(scene: NodeScene) -> None:
    scene.add_pod("waits", node="")
    assert scene.log("waits") == (204, "")


def test_a_pod_that_is_not_there_has_no_log(scene: NodeScene) -> None:
    code, status = scene.log("nobody")
    assert isinstance(status, dict)
    assert (code, status["message"]) == (404, 'pods "nobody" not found')


def test_a_node_that_is_not_there_is_told_as_upstream_does(scene: NodeScene) -> None:
    scene.add_pod("lost", node="no-such-node")
    code, status = scene.log("lost")
    assert isinstance(status, dict)
    assert (code, status["message"]) == (404, 'pods "no-such-node" not found')


def test_a_node_without_an_address_cannot_be_asked(scene: NodeScene) -> None:
    scene.add_pod("lost", node=scene.add_node(1, address=""))
    code, status = scene.log("lost")
    assert isinstance(status, dict)
    told = "no preferred addresses found; known addresses: []"
    assert (code, status["message"]) == (500, told)


def test_a_node_that_does_not_listen_is_an_error_that_says_where(scene: NodeScene) -> None:
    scene.add_pod("dark", node=scene.add_node(1))
    code, status = scene.log("dark")
    assert isinstance(status, dict)
    asked = f"https://127.0.0.1:1/containerLogs/{scene.namespace}/dark/main"
    why = "dial tcp 127.0.0.1:1: connect: connection refused"
    assert (code, status["message"]) == (500, f'Get "{asked}": {why}')


def test_a_node_with_a_strange_certificate_is_not_asked(scene: NodeScene, tmp_path: Path) -> None:
    make_node_certificates(tmp_path / "strangers")
    with running_node(tmp_path / "strangers", scene.server.access.authority) as stranger:
        scene.add_pod("trap", node=scene.add_node(stranger.node.port))
        code, status = scene.log("trap")
        assert isinstance(status, dict)
        assert code == 500
        assert "certificate signed by unknown authority" in status["message"]
        assert not stranger.node.asked
        # Unless whoever asks insists.
        assert scene.log("trap", insecureSkipTLSVerifyBackend="true") == (200, "")


@pytest.mark.parametrize(
    ("refusal", "code", "expected"),
    [
        (
            (400, 'container "main" in pod "web" is waiting to start: ContainerCreating'),
            400,
            {
                "reason": "BadRequest",
                "message": 'container "main" in pod "web" is waiting to start: ContainerCreating',
            },
        ),
        (
            (500, "no more"),
            500,
            {"reason": "InternalError", "message": "Internal error occurred: no more"},
        ),
        (
            (404, 'pod "web" not found\n'),
            404,
            {
                "reason": "NotFound",
                "message": "the server could not find the requested resource ( pods/log web)",
            },
        ),
        ((403, "not you"), 403, {"reason": "Forbidden", "message": "not you ( pods/log web)"}),
        (
            (502, 'a "gate"'),
            502,
            {
                "reason": "InternalError",
                "message": 'an error on the server ("a \\"gate\\"") has prevented the request from '
                "succeeding ( pods/log web)",
            },
        ),
        (
            (429, "later"),
            429,
            {
                "reason": "TooManyRequests",
                "message": "the server has received too many requests and has asked us to try "
                "again later ( pods/log web)",
            },
        ),
    ],
)
def test_a_node_that_refuses_is_quoted(
    scene: NodeScene,
    key: str,
    refusal: tuple[int, str],
    code: int,
    expected: dict[str, Any],
) -> None:
    scene.node.refusals[key] = refusal
    found, status = scene.log()
    assert isinstance(status, dict)
    assert found == code
    assert {name: status[name] for name in expected} == expected


def test_a_log_is_followed_as_it_grows(scene: NodeScene, key: str) -> None:
    with scene.followed() as response:
        assert [response.readline() for _ in range(3)] == [b"one\n", b"two\n", b"three\n"]
        scene.thread.write(key, "four")
        assert response.readline() == b"four\n"
        scene.thread.write(key, "END")
        assert response.read() == b"END\n"


def test_the_node_is_told_when_nobody_follows_any_more(scene: NodeScene) -> None:
    with scene.followed() as response:
        # All there is: nothing will be written that could fail.
        assert [response.readline() for _ in range(3)] == [b"one\n", b"two\n", b"three\n"]
        assert scene.node.open_streams == 1
    wait_until(lambda: scene.node.open_streams == 0)


def test_a_long_log_arrives_whole(scene: NodeScene) -> None:
    key = scene.add_pod("long")
    lines = [f"{number} " + "x" * 1000 for number in range(5000)]
    scene.thread.write(key, *lines)
    assert scene.log("long") == (200, "\n".join(lines) + "\n")
