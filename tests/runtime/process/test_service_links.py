"""The first list of Services: containers wait for it for a moment, then the start fails."""

import asyncio

import pytest

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.service import Service
from podstatus.runtime.port import CannotStartError
from podstatus.runtime.process.service_links import SYNC_SECONDS, NoServices, ServiceLinks
from podstatus.testing.clock import FakeClock, run_ready_tasks
from tests.support.processes.process_pods import ServicesInMemory, pod_of

WEB = from_document(
    {
        "metadata": {"name": "web", "namespace": "ns"},
        "spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}]},
    },
    Service,
)


def static_pod() -> Pod:
    annotations = {"kubernetes.io/config.source": "file"}
    return from_document({"metadata": {"namespace": "ns", "annotations": annotations}}, Pod)


async def test_the_first_list_is_awaited() -> None:
    services, clock = ServicesInMemory([WEB], listed=False), FakeClock()
    started = asyncio.ensure_future(ServiceLinks(services, clock).variables(pod_of()))
    await run_ready_tasks()
    assert not started.done()
    services.finish_list()
    assert (await started)["WEB_SERVICE_HOST"] == "10.0.0.1"


async def test_a_list_that_takes_long_fails_the_start_in_upstreams_words() -> None:
    services, clock = ServicesInMemory([WEB], listed=False), FakeClock()
    started = asyncio.ensure_future(ServiceLinks(services, clock).variables(pod_of()))
    await run_ready_tasks()
    await clock.advance(SYNC_SECONDS)
    with pytest.raises(CannotStartError) as refused:
        await started
    assert refused.value.reason == "CreateContainerConfigError"
    assert refused.value.message == (
        "services have not yet been read at least once, cannot construct envvars"
    )


async def test_a_static_pod_starts_without_an_api_server() -> None:
    services = ServicesInMemory([WEB], listed=False)
    assert await ServiceLinks(services, FakeClock()).variables(static_pod()) == {}


async def test_a_static_pod_has_the_services_that_are_known() -> None:
    variables = await ServiceLinks(ServicesInMemory([WEB]), FakeClock()).variables(static_pod())
    assert variables["WEB_SERVICE_HOST"] == "10.0.0.1"


async def test_a_node_without_an_api_server_has_no_services() -> None:
    assert await ServiceLinks(NoServices(), FakeClock()).variables(pod_of()) == {}
