"""How objects go: with grace, at once, held by finalizers, and marked by nothing else."""

from datetime import datetime

import pytest

from tests.servers.pods import causes, config_map, created, maps, pod, pods, refusal
from tests.support.processes.api_servers import MERGE, Document, Server


def marked(stored: Document) -> int | None:
    """The grace of a pod that is to go; None if it is not."""
    metadata = stored["metadata"]
    grace: int | None = metadata.get("deletionGracePeriodSeconds")
    assert (grace is None) == ("deletionTimestamp" not in metadata)
    return grace


def seconds_until_deletion(stored: Document) -> float:
    """How long after its creation it is to be gone; tests take no time worth counting."""
    metadata = stored["metadata"]
    end, start = (
        datetime.fromisoformat(metadata[key]) for key in ("deletionTimestamp", "creationTimestamp")
    )
    return (end - start).total_seconds()


def test_a_pod_on_a_node_is_marked_and_stays(server: Server, namespace: str) -> None:
    generation = created(server.client, pods(namespace), pod("a"))["metadata"]["generation"]
    code, answer = server.client.delete(pods(namespace, "a"))
    assert (code, marked(answer)) == (200, 30)
    stored = server.client.get(pods(namespace, "a"))[1]
    assert marked(stored) == 30
    assert 30 <= seconds_until_deletion(stored) <= 60
    assert stored["metadata"]["generation"] == generation + 1


def test_the_pod_says_how_much_grace_it_wants(server: Server, namespace: str) -> None:
    wanted = pod("a")
    wanted["spec"]["terminationGracePeriodSeconds"] = 7
    created(server.client, pods(namespace), wanted)
    assert marked(server.client.delete(pods(namespace, "a"))[1]) == 7


@pytest.mark.parametrize(("asked", "then"), [(5, 5), (0, None), (60, 30), (30, 30), (None, 30)])
def test_a_second_deletion_can_only_shorten_the_grace(
    server: Server, namespace: str, asked: int | None, then: int | None
) -> None:
    created(server.client, pods(namespace), pod("a"))
    server.client.delete(pods(namespace, "a"))
    options = None if asked is None else {"gracePeriodSeconds": asked}
    assert server.client.delete(pods(namespace, "a"), options)[0] == 200
    code, stored = server.client.get(pods(namespace, "a"))
    assert code == (404 if then is None else 200)
    if then is not None:
        assert marked(stored) == then
        assert then <= seconds_until_deletion(stored) <= then + 30


def test_a_pod_that_is_on_no_node_goes_at_once(server: Server, namespace: str) -> None:
    created(server.client, pods(namespace), pod("a", node=""))
    assert server.client.delete(pods(namespace, "a"))[0] == 200
    assert refusal(server.client.get(pods(namespace, "a"))) == (404, "NotFound")


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_pod_that_has_ended_goes_at_once(server: Server, namespace: str, phase: str) -> None:
    created(server.client, pods(namespace), pod("a"))
    server.client.patch(pods(namespace, "a", "status"), {"status": {"phase": phase}})
    assert server.client.delete(pods(namespace, "a"))[0] == 200
    assert server.client.get(pods(namespace, "a"))[0] == 404


def test_the_agents_last_word_takes_a_marked_pod_away(server: Server, namespace: str) -> None:
    uid = created(server.client, pods(namespace), pod("a"))["metadata"]["uid"]
    server.client.delete(pods(namespace, "a"))
    status = {"metadata": {"uid": uid}, "status": {"phase": "Failed"}}
    code, stored = server.client.patch(pods(namespace, "a", "status"), status)
    assert (code, marked(stored)) == (200, 30), "a status does not end a deletion"
    last = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    assert server.client.delete(pods(namespace, "a"), last)[0] == 200
    assert refusal(server.client.delete(pods(namespace, "a"), last)) == (404, "NotFound")


def test_finalizers_hold_a_pod_until_the_last_is_taken_off(server: Server, namespace: str) -> None:
    created(server.client, pods(namespace), pod("a", finalizers=["example.com/x", "example.com/y"]))
    code, stored = server.client.delete(pods(namespace, "a"), {"gracePeriodSeconds": 0})
    assert (code, marked(stored)) == (200, 0)
    one = {"metadata": {"finalizers": ["example.com/x"]}}
    code, stored = server.client.patch(pods(namespace, "a"), one, MERGE)
    assert (code, marked(stored)) == (200, 0)
    assert (
        server.client.patch(pods(namespace, "a"), {"metadata": {"finalizers": None}}, MERGE)[0]
        == 200
    )
    assert server.client.get(pods(namespace, "a"))[0] == 404


def test_nothing_holds_back_what_is_going(server: Server, namespace: str) -> None:
    created(server.client, pods(namespace), pod("a", finalizers=["example.com/x"]))
    server.client.delete(pods(namespace, "a"))
    more = {"metadata": {"finalizers": ["example.com/x", "example.com/y"]}}
    answer = server.client.patch(pods(namespace, "a"), more, MERGE)
    assert causes(answer) == ["metadata.finalizers"]


@pytest.mark.parametrize(
    ("metadata", "fields"),
    [
        ({"deletionTimestamp": "2024-01-01T00:00:00Z"}, ["metadata.deletionTimestamp"]),
        ({"deletionGracePeriodSeconds": 0}, ["metadata.deletionGracePeriodSeconds"]),
        ({"deletionGracePeriodSeconds": 5}, ["metadata.deletionGracePeriodSeconds"]),
    ],
    ids=str,
)
def test_only_a_deletion_marks_an_object(
    server: Server, namespace: str, metadata: Document, fields: list[str]
) -> None:
    for path, body in ((pods(namespace), pod("a")), (maps(namespace), config_map("a"))):
        before = created(server.client, path, body)
        assert causes(server.client.patch(f"{path}/a", {"metadata": metadata}, MERGE)) == fields
        assert (
            causes(
                server.client.replace(
                    f"{path}/a", before | {"metadata": before["metadata"] | metadata}
                )
            )
            == fields
        )


def test_an_update_does_not_take_a_mark_away(server: Server, namespace: str) -> None:
    created(server.client, pods(namespace), pod("a"))
    server.client.delete(pods(namespace, "a"))
    unmarked = {"deletionTimestamp": None, "deletionGracePeriodSeconds": None, "labels": {"k": "v"}}
    code, stored = server.client.patch(pods(namespace, "a"), {"metadata": unmarked}, MERGE)
    assert (code, marked(stored), stored["metadata"]["labels"]) == (200, 30, {"k": "v"})


def test_a_dry_run_deletes_nothing(server: Server, namespace: str) -> None:
    created(server.client, pods(namespace), pod("a"))
    path = f"{pods(namespace, 'a')}?dryRun=All"
    assert server.client.delete(path, {"gracePeriodSeconds": 0})[0] == 200
    assert marked(server.client.get(pods(namespace, "a"))[1]) is None


def test_all_of_a_namespace_can_be_deleted_by_selector(server: Server, namespace: str) -> None:
    for name, app in (("a", "web"), ("b", "web"), ("c", "db")):
        created(server.client, maps(namespace), config_map(name, app=app))
    assert server.client.delete(f"{maps(namespace)}?labelSelector=app%3Dweb")[0] == 200
    left = server.client.get(maps(namespace))[1]["items"]
    assert [item["metadata"]["name"] for item in left] == ["c"]
