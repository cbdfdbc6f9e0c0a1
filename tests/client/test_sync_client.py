"""The client without async code, and the status manager over it."""

import inspect
import json
import threading

import pytest

from podstatus import PodManager, StatusManager, decode
from podstatus.client.api_client import ApiClient
from podstatus.client.rest.resources import CONFIG_MAPS, PODS
from podstatus.client.sync_client import SyncClient
from podstatus.kube.api_errors import GoneError, UnavailableError
from podstatus.kube.objects.pod import Pod
from podstatus.testing.apiserver import ApiServerThread
from podstatus.testing.builders import make_status, running
from podstatus.testing.fakes import FakeDeletionSafety
from tests.client.config_maps import config_map
from tests.support.plain_access import PlainAccess


def test_calls_wait_for_their_answer(api_server: ApiServerThread) -> None:
    with SyncClient(PlainAccess.of(api_server)) as client:
        client.create(CONFIG_MAPS, config_map("a", x="1"), namespace="default")
        assert json.loads(client.get(CONFIG_MAPS, "a", namespace="default"))["data"] == {"x": "1"}
        assert len(json.loads(client.list(CONFIG_MAPS))["items"]) == 1
        with pytest.raises(GoneError):
            client.get(CONFIG_MAPS, "b", namespace="default")
    assert "podstatus-client" not in [thread.name for thread in threading.enumerate()]


def test_a_watch_is_read_with_a_plain_for(api_server: ApiServerThread) -> None:
    with SyncClient(PlainAccess.of(api_server)) as client:
        version = json.loads(client.list(CONFIG_MAPS))["metadata"]["resourceVersion"]
        for name in "abc":
            client.create(CONFIG_MAPS, config_map(name), namespace="default")
        with client.watch(CONFIG_MAPS, resource_version=version, timeout_seconds=1) as events:
            seen = [event.type for event in events]
    assert [kind for kind in seen if kind != "BOOKMARK"] == ["ADDED"] * 3


def test_an_error_in_the_reader_of_a_watch_is_its_own(api_server: ApiServerThread) -> None:
    with SyncClient(PlainAccess.of(api_server)) as client:
        with pytest.raises(KeyError), client.watch(CONFIG_MAPS):
            raise KeyError("mine")
        assert client.list(CONFIG_MAPS)


def test_a_client_that_is_not_open_says_so() -> None:
    client = SyncClient(PlainAccess("http://127.0.0.1:1"))
    with pytest.raises(RuntimeError, match="within `with`"):
        client.list(PODS)
    with client, pytest.raises(UnavailableError):
        client.list(PODS)


def test_every_call_of_the_async_client_is_there() -> None:
    calls = [
        name for name in vars(ApiClient) if not name.startswith("_") and name != "with_rate_limit"
    ]
    assert [name for name in calls if not hasattr(SyncClient, name)] == []
    assert inspect.signature(SyncClient.patch) == inspect.signature(ApiClient.patch)


def test_the_status_manager_keeps_a_pod_over_it(api_server: ApiServerThread) -> None:
    spec = {"nodeName": "n1", "containers": [{"name": "app", "image": "i"}]}
    body = json.dumps({"metadata": {"name": "web"}, "spec": spec}).encode()
    with SyncClient(PlainAccess.of(api_server)) as client:
        pod = decode(client.create(PODS, body, namespace="default"), Pod)
        pods = PodManager()
        pods.update_pod(pod)
        manager = StatusManager(client.pod_api(), pods, FakeDeletionSafety())
        manager.start()
        manager.set_pod_status(pod, make_status("Running", running("app"), Ready="True"))
        manager.stop()
        assert json.loads(client.get(PODS, "web", namespace="default"))["status"]["phase"] == (
            "Running"
        )


def test_a_watch_ends_when_another_thread_closes_the_client(api_server: ApiServerThread) -> None:
    began = threading.Event()
    ended: list[object] = []

    def watch(client: SyncClient) -> None:
        try:
            with client.watch(CONFIG_MAPS) as events:
                began.set()
                ended.extend(events)
        except (UnavailableError, RuntimeError) as error:
            ended.append(error)

    with SyncClient(PlainAccess.of(api_server)) as client:
        watching = threading.Thread(target=watch, args=(client,))
        watching.start()
        assert began.wait(90)
    watching.join(90)
    assert not watching.is_alive()
    assert ended
