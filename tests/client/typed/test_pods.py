"""The status manager's port over HTTP."""

import asyncio
import json

import pytest

from podstatus.client.api_client import ApiClient
from podstatus.client.typed.pods import HttpPodApi
from podstatus.kube.api_errors import ConflictError, GoneError, RejectedError
from podstatus.kube.objects.pod import ApiUID
from podstatus.status.ports import PodApi
from podstatus.testing.apiserver import ApiServerThread
from tests.client.raw_server import answer, raw_server
from tests.support.plain_access import PlainAccess

OTHER = ApiUID("11111111-2222-3333-4444-555555555555")


@pytest.fixture
def uid(api_server: ApiServerThread) -> ApiUID:
    """Return a pod that is bound to a node."""
    spec = {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}
    body = {"metadata": {"name": "web"}, "spec": spec}
    _, pod = api_server.request("POST", "/api/v1/namespaces/default/pods", body)
    return ApiUID(pod["metadata"]["uid"])


def patch(uid: str, **status: str) -> bytes:
    return json.dumps({"metadata": {"uid": uid}, "status": status}).encode()


async def test_a_status_is_patched_and_read_back(api_server: ApiServerThread, uid: ApiUID) -> None:
    async with ApiClient(PlainAccess.of(api_server)) as client:
        pods: PodApi = HttpPodApi(client)
        patched = await pods.patch_pod_status("default", "web", patch(uid, phase="Running"))
        assert patched.status.phase == "Running"
        assert (await pods.get_pod("default", "web")) == patched


@pytest.mark.usefixtures("uid")
async def test_another_pod_of_that_name_is_left_alone(api_server: ApiServerThread) -> None:
    async with ApiClient(PlainAccess.of(api_server)) as client:
        pods: PodApi = HttpPodApi(client)
        with pytest.raises(ConflictError):
            await pods.patch_pod_status("default", "web", patch(OTHER, phase="Failed"))
        with pytest.raises(ConflictError):
            await pods.delete_pod("default", "web", uid=OTHER, grace_period_seconds=0)
        assert (await pods.get_pod("default", "web")).status.phase == "Pending"


async def test_a_pod_is_deleted_with_its_grace(api_server: ApiServerThread, uid: ApiUID) -> None:
    async with ApiClient(PlainAccess.of(api_server)) as client:
        pods: PodApi = HttpPodApi(client)
        await pods.delete_pod("default", "web", uid=uid, grace_period_seconds=30)
        deleted = await pods.get_pod("default", "web")
        assert deleted.metadata.deletion_grace_period_seconds == 30
        await pods.delete_pod("default", "web", uid=uid, grace_period_seconds=0)
        with pytest.raises(GoneError):
            await pods.get_pod("default", "web")


async def test_a_response_that_is_not_a_pod_is_an_error() -> None:
    async def say(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b'{"spec": 5}'))

    async with raw_server(say) as address, ApiClient(PlainAccess(address)) as client:
        with pytest.raises(RejectedError, match="cannot read a Pod"):
            await HttpPodApi(client).get_pod("default", "web")
