"""Whoever says which object or which version is meant changes no other."""

import pytest

from tests.servers.pods import causes, config_map, created, maps, pod, pods, refusal
from tests.support.processes.api_servers import MERGE, STRATEGIC, Document, Server

OTHER_UID = "00000000-0000-0000-0000-000000000000"
CONFLICT = (409, "Conflict")


@pytest.mark.parametrize("content_type", [STRATEGIC, MERGE])
@pytest.mark.parametrize("subresource", ["", "status"])
def test_a_patch_of_another_uid_is_refused_as_invalid(
    server: Server, namespace: str, subresource: str, content_type: str
) -> None:
    created(server.client, pods(namespace), pod("a"))
    path = pods(namespace, "a", subresource)
    patch = {"metadata": {"uid": OTHER_UID}, "status": {"phase": "Running"}}
    # No conflict, as one might think: the UID is a field that may not change.
    assert causes(server.client.patch(path, patch, content_type)) == ["metadata.uid"]
    assert server.client.get(pods(namespace, "a"))[1]["status"]["phase"] == "Pending"


def test_a_patch_of_the_right_uid_is_stored(server: Server, namespace: str) -> None:
    uid = created(server.client, pods(namespace), pod("a"))["metadata"]["uid"]
    patch = {"metadata": {"uid": uid}, "status": {"phase": "Running"}}
    code, stored = server.client.patch(pods(namespace, "a", "status"), patch)
    assert (code, stored["status"]["phase"], stored["metadata"]["uid"]) == (200, "Running", uid)


def test_a_patch_with_nothing_but_the_uid_changes_nothing(server: Server, namespace: str) -> None:
    before = created(server.client, pods(namespace), pod("a"))
    patch = {"metadata": {"uid": before["metadata"]["uid"]}}
    code, after = server.client.patch(pods(namespace, "a", "status"), patch)
    assert (code, after) == (200, before)


def test_a_status_that_was_meant_for_the_predecessor_is_refused(
    server: Server, namespace: str
) -> None:
    uid = created(server.client, pods(namespace), pod("a"))["metadata"]["uid"]
    assert server.client.delete(pods(namespace, "a"), {"gracePeriodSeconds": 0})[0] == 200
    created(server.client, pods(namespace), pod("a"))
    patch = {"metadata": {"uid": uid}, "status": {"phase": "Failed"}}
    assert causes(server.client.patch(pods(namespace, "a", "status"), patch)) == ["metadata.uid"]


@pytest.mark.parametrize("name", ["uid", "resourceVersion"])
def test_a_deletion_of_another_one_is_a_conflict(server: Server, namespace: str, name: str) -> None:
    metadata = created(server.client, pods(namespace), pod("a"))["metadata"]
    wrong = {"uid": OTHER_UID, "resourceVersion": "1"}[name]
    options = {"gracePeriodSeconds": 0, "preconditions": {name: wrong}}
    assert refusal(server.client.delete(pods(namespace, "a"), options)) == CONFLICT
    assert server.client.get(pods(namespace, "a"))[0] == 200
    options["preconditions"] = {name: metadata[name]}
    assert server.client.delete(pods(namespace, "a"), options)[0] == 200
    assert server.client.get(pods(namespace, "a"))[0] == 404


def test_a_replacement_of_another_uid_is_a_conflict(server: Server, namespace: str) -> None:
    stored = created(server.client, maps(namespace), config_map("a"))
    stored["metadata"]["uid"] = OTHER_UID
    answer = server.client.replace(maps(namespace, "a"), stored)
    assert refusal(answer) == CONFLICT
    assert "Precondition failed: UID in precondition" in answer[1]["message"]


def changed(stored: Document, value: str) -> Document:
    return stored | {"data": {"k": value}}


def test_a_replacement_of_an_old_version_is_a_conflict(server: Server, namespace: str) -> None:
    first = created(server.client, maps(namespace), config_map("a"))
    code, second = server.client.replace(maps(namespace, "a"), changed(first, "1"))
    assert code == 200
    answer = server.client.replace(maps(namespace, "a"), changed(first, "2"))
    assert refusal(answer) == CONFLICT
    assert "please apply your changes to the latest version and try again" in answer[1]["message"]
    assert server.client.get(maps(namespace, "a"))[1] == second


def test_a_replacement_that_names_no_version_is_stored(server: Server, namespace: str) -> None:
    created(server.client, maps(namespace), config_map("a"))
    code, stored = server.client.replace(maps(namespace, "a"), changed(config_map("a"), "1"))
    assert (code, stored["data"]) == (200, {"k": "1"})


def test_a_patch_of_an_old_version_is_a_conflict(server: Server, namespace: str) -> None:
    version = created(server.client, pods(namespace), pod("a"))["metadata"]["resourceVersion"]
    patch = {"metadata": {"resourceVersion": version}, "status": {"phase": "Running"}}
    assert server.client.patch(pods(namespace, "a", "status"), patch)[0] == 200
    patch["status"]["phase"] = "Failed"
    assert refusal(server.client.patch(pods(namespace, "a", "status"), patch)) == CONFLICT


def test_what_changes_nothing_makes_no_new_version(server: Server, namespace: str) -> None:
    before = created(server.client, maps(namespace), config_map("a", app="web"))
    again = {"metadata": {"labels": {"app": "web"}}}
    assert server.client.patch(maps(namespace, "a"), again) == (200, before)
    assert server.client.replace(maps(namespace, "a"), before) == (200, before)


def test_a_name_is_taken_once(server: Server, namespace: str) -> None:
    created(server.client, pods(namespace), pod("a"))
    answer = server.client.create(pods(namespace), pod("a"))
    assert refusal(answer) == (409, "AlreadyExists")
    assert answer[1]["message"] == 'pods "a" already exists'


def test_an_object_that_does_not_say_its_kind_is_taken_for_the_paths(
    server: Server, namespace: str
) -> None:
    stored = created(server.client, maps(namespace), {"metadata": {"name": "a"}})
    assert (stored["kind"], stored["apiVersion"]) == ("ConfigMap", "v1")
    other = {"kind": "Secret", "metadata": {"name": "b"}}
    assert refusal(server.client.create(maps(namespace), other)) == (400, "BadRequest")
