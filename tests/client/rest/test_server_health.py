"""When the server was last heard is known, whatever was asked of it, and how it answers."""

import asyncio

import pytest

from podstatus.base.clock import Clock
from podstatus.base.metric_values import OVERFLOW_LABEL_VALUE
from podstatus.base.system_clock import SystemClock
from podstatus.client import PODS, ApiClient, kubeconfig_config
from podstatus.client.rest.server_health import RequestMetrics, ServerHealth, server_host
from podstatus.kube.api_errors import ApiError
from podstatus.testing.apiserver import ApiServerThread
from podstatus.testing.clock import FakeClock


async def test_answers_refusals_and_events_are_heard_and_silence_is_not(
    api_server: ApiServerThread,
) -> None:
    clock = FakeClock()
    contact = ServerHealth(clock)

    def is_there() -> bool:
        return contact.is_reachable

    async def refused(client: ApiClient) -> None:
        with pytest.raises(ApiError):
            await client.get(PODS, "none", namespace="default")

    async with ApiClient(kubeconfig_config(api_server.kubeconfig), health=contact) as client:
        await clock.advance(5)
        await client.list(PODS)
        assert is_there()
        assert contact.age_seconds == 0
        await clock.advance(7)
        assert contact.age_seconds == 7
        await refused(client)
        assert contact.age_seconds == 0
        await asyncio.to_thread(api_server.inject, {"action": "drop"})
        await clock.advance(3)
        await refused(client)
        assert not is_there()
        assert contact.age_seconds == 3
        await asyncio.to_thread(api_server.inject)
        async with client.watch(PODS) as events:
            assert is_there()
            await clock.advance(2)
            pod = {
                "metadata": {"name": "web"},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            }
            path = "/api/v1/namespaces/default/pods"
            await asyncio.to_thread(api_server.request, "POST", path, pod)
            await anext(aiter(events))
            assert contact.age_seconds == 0


async def test_answers_tell_how_far_the_clocks_are_apart(api_server: ApiServerThread) -> None:
    async def skew(clock: Clock) -> float | None:
        contact = ServerHealth(clock)
        async with ApiClient(kubeconfig_config(api_server.kubeconfig), health=contact) as client:
            await client.list(PODS)
        return contact.clock_skew_seconds

    assert await skew(SystemClock()) == 0.0
    wrong = await skew(FakeClock())
    assert wrong is not None
    assert wrong > 3600


async def test_every_request_is_counted_by_its_answer_and_calls_are_timed(
    api_server: ApiServerThread,
) -> None:
    contact = ServerHealth(FakeClock())

    access = kubeconfig_config(api_server.kubeconfig)
    async with ApiClient(access, health=contact) as client:
        await client.list(PODS)
        await client.list(PODS)
        for fault in ((), ({"action": "drop"},)):
            await asyncio.to_thread(api_server.inject, *fault)
            with pytest.raises(ApiError):
                await client.get(PODS, "none", namespace="default")
        await asyncio.to_thread(api_server.inject)
        async with client.watch(PODS):
            pass
        host = client.server.removeprefix("https://")
    counts = contact.requests
    assert counts.responses.snapshot() == {
        ("200", "GET", host): 3,
        ("404", "GET", host): 1,
        ("<error>", "GET", host): 1,
    }
    assert {kind: spread.count for kind, spread in counts.seconds.snapshot().items()} == {
        ("GET", host): 4
    }, "a watch has no duration"


def test_a_server_that_answers_with_all_kinds_of_codes_fills_nothing() -> None:
    counts = RequestMetrics()
    for code in range(100, 1000):
        counts.record_response(code, "GET", "host")
    assert len(counts.responses.snapshot()) == 101
    assert (
        counts.responses.snapshot()[
            OVERFLOW_LABEL_VALUE, OVERFLOW_LABEL_VALUE, OVERFLOW_LABEL_VALUE
        ]
        == 800
    )


@pytest.mark.parametrize(
    ("server", "host"),
    [
        ("https://10.0.0.1:6443", "10.0.0.1:6443"),
        ("https://[::1]:6443/clusters/a", "[::1]:6443"),
        ("https://ann:secret@api.example.com", "api.example.com"),
    ],
)
def test_the_host_label_has_no_password(server: str, host: str) -> None:
    assert server_host(server) == host
