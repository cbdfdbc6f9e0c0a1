"""The query API over HTTPS: pods, timelines, nodes, events and freshness."""

import json
from typing import Any

import aiohttp
import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.history.node_tables import NodeLoadSample
from podstatus.observe.history.sqlite_store import HistoryEntry, node_entry
from podstatus.observe.ports import Freshness, NodeSummary
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary
from podstatus.observe.transitions.compare_statuses import EVENT, Transition
from podstatus.web.v1.filters import MAX_QUERY_BYTES, PodFilter
from podstatus.web.v1.handlers import paginate_pods
from podstatus.web.v1.wire import parse_transition, rfc3339_millis, transition_view
from tests.support.web.fake_status_view import AT, a_pod, make_entry
from tests.support.web.node_server import Scene

NOW = Time.from_unix_nanos(AT)


async def ask_all(scene: Scene, *paths: str, code: int = 200, **known: Any) -> list[Any]:
    """The decoded responses to GETs, with this snapshot and history."""
    set_up(scene, **known)
    async with scene.client("") as session:
        return [await _get(session, path, code) for path in paths]


async def _get(session: aiohttp.ClientSession, path: str, code: int) -> Any:
    async with session.get(path) as answer:
        assert answer.headers["Content-Type"].startswith("application/json")
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        document = json.loads(await answer.text())
        assert answer.status == code, (path, document)
        return document


async def ask(scene: Scene, path: str, *, code: int = 200, **known: Any) -> Any:
    (document,) = await ask_all(scene, path, code=code, **known)
    return document


def set_up(scene: Scene, **known: Any) -> None:
    for pod in known.pop("pods", ()):
        scene.view.snapshot_cache.put(pod)
    for name, value in known.items():
        setattr(scene.view, name, value)


def names(document: Any) -> list[str]:
    return [f"{pod['namespace']}/{pod['name']}" for pod in document["pods"]]


CRASHING = a_pod(
    "web",
    "shop",
    conditions=(ConditionSummary(type="Ready", status="False"),),
    containers=(
        ContainerSummary(
            name="app",
            state=parse_container_state("waiting CrashLoopBackOff"),
            last_state=parse_container_state("terminated Error 3"),
            restarts=4,
        ),
    ),
)
PODS = (a_pod("b"), a_pod("a"), CRASHING, a_pod("job", "shop", phase="Succeeded", node="node-2"))


async def test_pods_are_sorted_and_have_their_health(scene: Scene) -> None:
    document = await ask(scene, "/v1/pods", pods=PODS)
    assert names(document) == ["ns/a", "ns/b", "shop/job", "shop/web"]
    assert [pod["health"]["state"] for pod in document["pods"]] == [
        "healthy",
        "healthy",
        "done",
        "crashing",
    ]
    assert "terminated" not in document["pods"][3]["health"]["message"]
    assert "Error 3, 4 restarts" in document["pods"][3]["health"]["message"]
    assert (document["remaining"], document["continue"]) == (0, "")
    assert document["pods"][0]["created"] == "2026-11-15T11:59:00Z"


async def test_pods_can_be_asked_for_by_what_they_are(scene: Scene) -> None:
    expected = {
        "namespace=shop": ["shop/job", "shop/web"],
        "labelSelector=app%20in%20(a,web)": ["ns/a", "shop/web"],
        "phase=Succeeded": ["shop/job"],
        "condition=Ready:False": ["shop/web"],
        "health=crashing": ["shop/web"],
        "node=node-2": ["shop/job"],
        "namespace=ns&health=crashing": [],
        "namespace=": ["ns/a", "ns/b", "shop/job", "shop/web"],
    }
    documents = await ask_all(scene, *(f"/v1/pods?{query}" for query in expected), pods=PODS)
    assert dict(zip(expected, map(names, documents), strict=True)) == expected


async def test_pods_come_a_page_at_a_time(scene: Scene) -> None:
    first = await ask(scene, "/v1/pods?limit=3", pods=PODS)
    assert (names(first), first["remaining"]) == (["ns/a", "ns/b", "shop/job"], 1)
    # Pods are created and deleted between the pages.
    scene.view.snapshot_cache.remove(a_pod("a").uid)
    scene.view.snapshot_cache.put(a_pod("aa"))
    last = await ask(scene, f"/v1/pods?limit=3&continue={first['continue']}")
    assert (names(last), last["remaining"], last["continue"]) == (["shop/web"], 0, "")


@given(
    st.sets(st.tuples(st.sampled_from("abc"), st.text("xyz", min_size=1, max_size=3)), max_size=12),
    st.integers(1, 5),
)
def test_pages_have_every_pod_once_and_in_order(given: set[tuple[str, str]], limit: int) -> None:
    pods = [a_pod(name, namespace) for namespace, name in given]
    seen, after = [], ""
    while True:
        page = paginate_pods(pods, PodFilter(), NOW, limit=limit, after=after)
        seen += [(pod.namespace, pod.name) for pod in page.pods]
        assert len(page.pods) == min(limit, len(page.pods) + page.remaining)
        if not (after := page.next):
            break
    assert seen == sorted(given)


async def test_an_invalid_request_is_rejected_with_a_message(scene: Scene) -> None:
    expected = {
        "/v1/pods?label=app": "unknown parameter label",
        "/v1/status?x=1": "unknown parameter x",
        "/v1/pods?limit=0": "from 1 to 1000",
        "/v1/pods?limit=1001": "from 1 to 1000",
        "/v1/pods?limit=-1": "must be an integer from",
        "/v1/pods?limit=%D9%A1": "must be an integer from",
        "/v1/pods?limit=1&limit=2": "specify it once",
        "/v1/pods?continue=nonsense": "leave it out to start over",
        "/v1/pods?continue=%FF%00": "leave it out to start over",
        "/v1/pods?continue=WzEsMiwzXQ==": "leave it out to start over",
        "/v1/pods?labelSelector=a%20b": "labelSelector",
        "/v1/pods?health=fine": "one of healthy",
        "/v1/pods/ns/p/timeline?limit=5001": "from 1 to 5000",
        "/v1/pods/ns/p/timeline?after=x": "must be an integer from",
        "/v1/events?after=99999999999999999999": "must be an integer from",
    }
    for document, says in zip(
        await ask_all(scene, *expected, code=400), expected.values(), strict=True
    ):
        kind = (document["kind"], document["status"], document["code"], document["reason"])
        assert kind == ("Status", "Failure", 400, "BadRequest")
        assert says in document["message"]


async def test_what_is_not_known_is_404_in_json(scene: Scene) -> None:
    expected = {
        "/v1/pods/ns/gone": "/v1/pods/ns/gone/timeline",
        "/v1/pods/ns/gone/timeline": "is unknown and has no history",
        "/v1/nodes/gone/timeline": "is unknown and has no history",
        "/v1/nodes/other": "/v1/nodes lists the known ones",
    }
    documents = await ask_all(scene, *expected, code=404, pods=PODS)
    for document, says in zip(documents, expected.values(), strict=True):
        assert document["reason"] == "NotFound"
        assert says in document["message"]


async def test_a_pod_has_the_progress_of_its_sync(scene: Scene) -> None:
    document = await ask(scene, "/v1/pods/shop/web", pods=PODS)
    assert document["pod"]["uid"] == "uid-shop-web"
    assert document["pod"]["containers"][0]["restarts"] == 4
    assert document["sync"] == {"version": 7, "unsent": 2, "oldestUnsentSeconds": 0.0}


async def test_the_newer_of_two_pods_with_one_name_is_returned(scene: Scene) -> None:
    newer = a_pod(uid="uid-new", created=NOW)
    document = await ask(scene, "/v1/pods/ns/p", pods=(newer, a_pod()))
    assert document["pod"]["uid"] == "uid-new"


async def test_a_timeline_is_in_order_to_the_millisecond(scene: Scene) -> None:
    entries = [make_entry(1), make_entry(2, "other"), make_entry(3)]
    document = await ask(scene, "/v1/pods/ns/p/timeline", entries=entries)
    assert [(it["id"], it["at"]) for it in document["transitions"]] == [
        (1, "2026-11-15T12:00:00.001Z"),
        (3, "2026-11-15T12:00:00.003Z"),
    ]
    assert document["transitions"][0]["before"] == "Pending"
    assert (document["after"], document["more"]) == (3, False)
    assert document["history"]["overflowed"] == 0


async def test_a_timeline_goes_on_where_it_ended(scene: Scene) -> None:
    entries = [make_entry(number) for number in range(1, 6)]
    paths = (f"/v1/pods/ns/p/timeline?{it}" for it in ("after=1&limit=2", "after=5"))
    document, last = await ask_all(scene, *paths, entries=entries)
    assert [it["id"] for it in document["transitions"]] == [2, 3]
    assert (document["after"], document["more"]) == (3, True)
    assert (last["transitions"], last["after"], last["more"]) == ([], 5, False)


async def test_a_timeline_of_a_node_has_its_load_on_the_first_page(scene: Scene) -> None:
    scene.view.samples = [NodeLoadSample(node="node-1", at=AT + it, cpu=0.5) for it in range(2)]
    change = Transition(kind=EVENT, after="Normal")
    entries = [node_entry("node-1", AT + it, change, id=it) for it in (1, 2, 3)]
    path = "/v1/nodes/node-1/timeline"
    first, last = await ask_all(scene, f"{path}?limit=2", f"{path}?after=2", entries=entries)
    assert [it["id"] for it in first["transitions"]] == [1, 2]
    assert (first["after"], first["more"], len(first["load"])) == (2, True, 2)
    assert [it["id"] for it in last["transitions"]] == [3]
    assert (last["more"], last["load"]) == (False, [])


async def test_a_node_without_a_history_has_an_empty_timeline(scene: Scene) -> None:
    document = await ask(scene, "/v1/nodes/node-1/timeline")
    assert (document["transitions"], document["load"]) == ([], [])


async def test_a_pod_without_a_history_has_an_empty_timeline(scene: Scene) -> None:
    assert (await ask(scene, "/v1/pods/ns/a/timeline", pods=PODS))["transitions"] == []


async def test_events_are_picked_from_all_that_happened(scene: Scene) -> None:
    entries = [
        make_entry(number, kind=EVENT if number % 3 == 0 else "phase") for number in range(1, 10)
    ]
    entries.append(make_entry(10, kind=EVENT, namespace="other"))
    path = "/v1/events?namespace=ns"
    document, rest = await ask_all(scene, f"{path}&limit=2", f"{path}&after=6", entries=entries)
    assert [it["id"] for it in document["transitions"]] == [3, 6]
    assert document["transitions"][0]["reason"] == "Started"
    assert (document["after"], document["more"]) == (6, True)
    assert [it["id"] for it in rest["transitions"]] == [9]
    assert (rest["after"], rest["more"]) == (10, False)


async def test_one_request_looks_at_so_much_and_no_more(scene: Scene) -> None:
    scene.view.entries = [make_entry(number) for number in range(1, 60_001)]
    document = json.loads((await scene.get("/v1/events"))[1])
    assert scene.view.read == 50_000
    assert (document["transitions"], document["after"], document["more"]) == ([], 50_000, True)


async def test_a_history_that_cannot_be_read_is_said_and_the_rest_is_answered(scene: Scene) -> None:
    scene.view.broken = True
    paths = ("/v1/pods/ns/p/timeline", "/v1/events", "/v1/pods", "/v1/status")
    codes, texts = zip(*([await scene.get(path) for path in paths]), strict=True)
    assert codes == (503, 503, 200, 200)
    assert "disk full" in texts[0]


async def test_one_node_is_an_object_and_many_are_a_list(scene: Scene) -> None:
    assert (await ask(scene, "/v1/node"))["node"]["name"] == "node-1"
    two = {name: NodeSummary(name=name) for name in ("z", "y")}
    await ask(scene, "/v1/node", code=404, known_nodes=two)
    assert [node["name"] for node in (await ask(scene, "/v1/nodes"))["nodes"]] == ["y", "z"]
    await ask(scene, "/v1/nodes/z")


async def test_it_answers_while_the_server_is_away_and_says_how_old_it_is(scene: Scene) -> None:
    scene.view.age = Freshness(server_reachable=False, server_age_seconds=321.5)
    async with scene.client("") as session, session.get("/v1/pods") as answer:
        age, document = answer.headers["X-Podstatus-Age"], await answer.json()
    assert age == "321.500"
    assert document["freshness"]["serverReachable"] is False
    assert document["freshness"]["serverAgeSeconds"] == 321.5


async def test_measurements_are_rounded_to_three_decimals(scene: Scene) -> None:
    used = {"cpu": 0.1 + 0.2, "memory": 2096050176.0}
    known: dict[str, Any] = {
        "known_nodes": {"n": NodeSummary(name="n", used=used, lease_age_seconds=1.4723011059)},
        "age": Freshness(server_age_seconds=1.472496194999998, runtime_age_seconds=None),
    }
    one, many = await ask_all(scene, "/v1/node", "/v1/nodes", **known)
    for document, node in ((one, one["node"]), (many, many["nodes"][0])):
        assert str(node["used"]) == "{'cpu': 0.3, 'memory': 2096050176}"
        assert node["leaseAgeSeconds"] == 1.472
        assert document["freshness"]["serverAgeSeconds"] == 1.472


async def test_the_whole_is_counted(scene: Scene) -> None:
    document = await ask(scene, "/v1/status", pods=PODS)
    assert document["pods"] == 4
    assert document["phases"] == {"Running": 3, "Succeeded": 1}
    assert document["health"] == {"healthy": 2, "crashing": 1, "done": 1}
    assert document["history"]["written"] == 3


async def test_head_is_get_without_what_it_has(scene: Scene) -> None:
    async with scene.client("") as session, session.head("/v1/pods") as answer:
        assert (answer.status, await answer.read(), answer.headers["X-Podstatus-Age"]) == (
            200,
            b"",
            "0.250",
        )


async def test_nothing_can_be_changed(scene: Scene) -> None:
    async with scene.client() as session:
        for method in ("POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PURGE"):
            async with session.request(method, "/v1/pods") as answer:
                assert (answer.status, answer.headers["Allow"]) == (405, "GET, HEAD"), method
                assert "/v1/pods allows GET, HEAD" in (await answer.json())["message"]


async def test_a_query_has_an_end(scene: Scene) -> None:
    path = f"/v1/pods?labelSelector={'a' * MAX_QUERY_BYTES}"
    assert "use fewer parameters" in (await ask(scene, path, code=414))["message"]


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1_999_999, "1970-01-01T00:00:00.001Z"),
        (999_999_999, "1970-01-01T00:00:00.999Z"),
        (AT + 120_000_000, "2026-11-15T12:00:00.120Z"),
    ],
)
def test_milliseconds_are_always_three_digits_and_never_too_late(at: int, text: str) -> None:
    assert rfc3339_millis(at) == text


def test_a_transition_survives_the_round_trip() -> None:
    change = Transition(
        kind="container",
        subject="app",
        state_before=parse_container_state("running"),
        state_after=parse_container_state("terminated R 3"),
        reason="R",
        message="m",
    )
    away = Transition(kind="away", duration_seconds=12.5)
    for each in (change, away):
        entry = HistoryEntry(
            id=7,
            at=1_800_000_000_123_000_000,
            uid=PodUID("u"),
            namespace="ns",
            name="p",
            transition=each,
        )
        assert parse_transition(transition_view(entry)) == entry
