"""Lists: what is selected, in pages of one moment, as of when."""

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from tests.servers.pods import causes, config_map, created, maps, pod, pods, refusal
from tests.support.processes.api_servers import Document, Server

EXPIRED = (410, "Expired")


def names(document: Document) -> str:
    """The names of what was listed."""
    return "".join(item["metadata"]["name"] for item in document["items"])


@pytest.fixture
def five(server: Server, namespace: str) -> list[str]:
    """Config maps a to e in a namespace; the resource version after each."""
    made = []
    for number, name in enumerate("abcde"):
        body = config_map(name, app="web" if number % 2 else "db", number=str(number))
        made.append(created(server.client, maps(namespace), body)["metadata"]["resourceVersion"])
    return made


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("app=web", "bd"),
        ("app==web", "bd"),
        ("app!=web", "ace"),
        ("app in (web,db),number!=1", "acde"),
        ("app notin (web)", "ace"),
        ("app", "abcde"),
        ("!app", ""),
        ("other!=x", "abcde"),
        ("number>2", "de"),
        ("number<1", "a"),
        ("app=", ""),
        ("app=web,app=db", ""),
    ],
)
def test_labels_select(server: Server, namespace: str, selector: str, expected: str) -> None:
    path = f"{maps(namespace)}?labelSelector={quote(selector)}"
    assert names(server.client.get(path)[1]) == expected


@pytest.mark.usefixtures("five")
@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("metadata.name=c", "c"),
        ("metadata.name!=c", "abde"),
        ("metadata.name=c,metadata.name!=c", ""),
        ("metadata.namespace=elsewhere", ""),
        ("", "abcde"),
    ],
)
def test_fields_select(server: Server, namespace: str, selector: str, expected: str) -> None:
    path = f"{maps(namespace)}?fieldSelector={quote(selector)}"
    assert names(server.client.get(path)[1]) == expected


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        ("spec.nodeName=node-1", "ac"),
        ("spec.nodeName!=node-1", "b"),
        ("spec.nodeName=", "b"),
        ("status.phase=Running", "a"),
        ("status.phase!=Running,spec.nodeName=node-1", "c"),
        ("spec.restartPolicy=Always", "abc"),
        ("metadata.name=a,spec.nodeName=node-1", "a"),
    ],
)
def test_fields_of_pods_select(
    server: Server, namespace: str, selector: str, expected: str
) -> None:
    for name, node in (("a", "node-1"), ("b", ""), ("c", "node-1")):
        created(server.client, pods(namespace), pod(name, node=node))
    server.client.patch(pods(namespace, "a", "status"), {"status": {"phase": "Running"}})
    path = f"{pods(namespace)}?fieldSelector={quote(selector)}"
    assert names(server.client.get(path)[1]) == expected


@pytest.mark.parametrize(
    "parameter",
    [
        "labelSelector=-bad",
        "labelSelector=a+in+b",
        "labelSelector=number+%3E+x",
        "fieldSelector=bad",
        "fieldSelector=data.key%3D1",
        "limit=x",
        "continue=garbage",
        "resourceVersion=abc",
        "resourceVersion=-1",
        "timeoutSeconds=soon",
    ],
)
def test_what_makes_no_sense_is_refused(server: Server, namespace: str, parameter: str) -> None:
    assert refusal(server.client.get(f"{maps(namespace)}?{parameter}")) == (400, "BadRequest")


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ("resourceVersionMatch=Exact", "resourceVersionMatch"),
        ("resourceVersionMatch=NotOlderThan", "resourceVersionMatch"),
        ("resourceVersionMatch=Exact&resourceVersion=0", "resourceVersionMatch"),
        ("resourceVersionMatch=Bogus&resourceVersion=1", "resourceVersionMatch"),
        ("resourceVersionMatch=Exact&resourceVersion=1&continue=x", "resourceVersionMatch"),
        ("sendInitialEvents=true", "sendInitialEvents"),
        ("watch=true&sendInitialEvents=true", "resourceVersionMatch"),
        ("watch=true&sendInitialEvents=false", "resourceVersionMatch"),
        ("watch=true&resourceVersion=1&resourceVersionMatch=NotOlderThan", "resourceVersionMatch"),
        ("watch=true&sendInitialEvents=true&resourceVersionMatch=Exact", "resourceVersionMatch"),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(
    server: Server, namespace: str, parameters: str, field: str
) -> None:
    assert causes(server.client.get(f"{maps(namespace)}?{parameters}")) == [field]


def pages(server: Server, path: str, begin: str = "") -> Iterator[Document]:
    """The pages of a list, each asked for when it is wanted; the first one also with `begin`."""
    _, page = server.client.get(f"{path}{begin}")
    yield page
    while token := page["metadata"].get("continue"):
        code, page = server.client.get(f"{path}&continue={token}")
        assert code == 200, page
        yield page


def test_pages_show_one_moment(server: Server, namespace: str, five: list[str]) -> None:
    read = pages(server, f"{maps(namespace)}?limit=2")
    first = next(read)
    assert (names(first), first["metadata"]["remainingItemCount"]) == ("ab", 3)
    created(server.client, maps(namespace), config_map("cc"))
    server.client.delete(maps(namespace, "d"))
    server.client.patch(maps(namespace, "e"), {"data": {"k": "new"}})
    second, third = read
    assert (names(second), second["metadata"]["remainingItemCount"]) == ("cd", 1)
    assert (names(third), "remainingItemCount" in third["metadata"]) == ("e", False)
    assert "data" not in third["items"][0]
    versions = {page["metadata"]["resourceVersion"] for page in (first, second, third)}
    assert len(versions) == 1
    assert versions.pop() >= five[-1]
    assert names(server.client.get(maps(namespace))[1]) == "abccce"


@pytest.mark.usefixtures("five")
def test_pages_of_a_selection_do_not_count_what_is_left(server: Server, namespace: str) -> None:
    read = list(pages(server, f"{maps(namespace)}?limit=1&labelSelector=app%3Ddb"))
    assert [names(page) for page in read] == ["a", "c", "e"]
    assert all("remainingItemCount" not in page["metadata"] for page in read)


def test_a_list_can_be_of_an_exact_version(server: Server, namespace: str, five: list[str]) -> None:
    old = f"&resourceVersion={five[2]}"
    path = f"{maps(namespace)}?limit=0{old}"
    assert names(server.client.get(path)[1]) == "abcde", "at least as new"
    assert names(server.client.get(f"{path}&resourceVersionMatch=NotOlderThan")[1]) == "abcde"
    exact = server.client.get(f"{path}&resourceVersionMatch=Exact")[1]
    assert (names(exact), exact["metadata"]["resourceVersion"]) == ("abc", five[2])
    read = pages(server, f"{maps(namespace)}?limit=2", old)
    assert [names(page) for page in read] == ["ab", "c"]


@pytest.mark.usefixtures("five")
def test_a_list_that_goes_on_has_a_version_already(server: Server, namespace: str) -> None:
    path = f"{maps(namespace)}?limit=2"
    token = server.client.get(path)[1]["metadata"]["continue"]
    answer = server.client.get(f"{path}&continue={token}&resourceVersion=1")
    assert refusal(answer) == (400, "BadRequest")


@pytest.mark.usefixtures("five")
def test_a_list_of_any_version_is_not_cut_into_pages(server: Server, namespace: str) -> None:
    page = server.client.get(f"{maps(namespace)}?limit=2&resourceVersion=0")[1]
    assert "continue" not in page["metadata"]


def test_a_version_that_is_still_to_come_is_waited_for_in_vain(
    server: Server, namespace: str
) -> None:
    answer = server.client.get(f"{maps(namespace)}?resourceVersion={10**15}")
    assert refusal(answer) == (504, "Timeout")
    assert answer[1]["message"].startswith("Timeout: Too large resource version: ")


@pytest.mark.own_server
def test_what_was_forgotten_has_to_be_listed_anew(
    server: Server, namespace: str, five: list[str]
) -> None:
    page = server.client.get(f"{maps(namespace)}?limit=2")[1]
    created(server.client, maps(namespace), config_map("cc"))
    server.forget()
    exact = f"{maps(namespace)}?resourceVersion={five[2]}&resourceVersionMatch=Exact"
    assert refusal(server.client.get(exact)) == EXPIRED
    token = page["metadata"]["continue"]
    answer = server.client.get(f"{maps(namespace)}?limit=2&continue={token}")
    assert refusal(answer) == EXPIRED
    rest = answer[1]["metadata"]["continue"]
    read = pages(server, f"{maps(namespace)}?limit=2", f"&continue={rest}")
    assert "".join(map(names, read)) == "cccde", "the rest, as it is by now"
