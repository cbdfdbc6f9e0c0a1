"""Queries to a whole node in this process, with and without an API server."""

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from podstatus.agent.compose.agent import build_node_agent
from podstatus.base.system_clock import SystemClock
from podstatus.testing.apiserver import ApiServerThread
from tests.agent.compose.query_scene import PARTITION, PODS, a_pod, ask
from tests.support.running_agent import node_context, running_agent
from tests.support.web.transition_text import after_text

SECONDS = 90
RECOVERED = ["terminated Error 3", "running"]
RFC_3339_MILLIS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def states(document: Any) -> list[str]:
    """What became of containers, one after the other."""
    return [after_text(it) for it in document["transitions"] if it["kind"] == "container"]


class Client:
    """An HTTP client on this machine."""

    def __init__(self, session: aiohttp.ClientSession, token: str) -> None:
        self._session = session
        self._token = token

    async def get(self, path: str, *, authorized: bool = False) -> Any:
        headers = {"Authorization": f"Bearer {self._token}"} if authorized else {}
        async with self._session.get(path, headers=headers) as answer:
            text = await answer.text()
            assert answer.status == 200, (path, text)
            return json.loads(text) if text.startswith("{") else text

    async def drain(self) -> None:
        headers = {"Authorization": f"Bearer {self._token}"}
        async with self._session.post("/drain", headers=headers) as answer:
            assert answer.status == 200, await answer.text()

    async def until(self, path: str, holds: Callable[[Any], bool]) -> Any:
        while not holds(document := await self.get(path)):
            await SystemClock().wait(0.05)
        return document


@asynccontextmanager
async def a_node(folder: Path, server: ApiServerThread) -> AsyncIterator[Client]:
    with node_context(folder / "root", server, node_lease_duration_seconds="4") as context:
        files = context.server_files
        async with running_agent(build_node_agent(context), SECONDS) as running:
            trust = ssl.create_default_context(cafile=files.certificate)
            connector = aiohttp.TCPConnector(ssl=trust)
            url = running.serving.result().agent
            async with aiohttp.ClientSession(url, connector=connector) as session:
                yield Client(session, files.token)


async def test_a_crash_and_a_recovery_are_in_the_timeline(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async with a_node(tmp_path, server) as client:
        script = {"podstatus.dev/simulate": "run=0.2s, exit=3; run=forever"}
        await ask(server, "POST", PODS, a_pod("web", **script))
        ready = "/v1/pods?namespace=default&condition=Ready&labelSelector=app%3Dweb"

        def restarted(document: Any) -> bool:
            pods = document["pods"]
            return bool(pods) and pods[0]["containers"][0].get("restarts") == 1

        (pod,) = (await client.until(ready, restarted))["pods"]
        assert pod["health"]["state"] == "crashing"
        assert pod["health"]["message"].endswith("Error 3, 1 restart; it is running again.")
        path = "/v1/pods/default/web/timeline"
        after = await client.until(path, lambda body: states(body)[-2:] == RECOVERED)
        assert states(after) == ["waiting ContainerCreating", "running", *RECOVERED]
        assert all(RFC_3339_MILLIS.fullmatch(it["at"]) for it in after["transitions"])
        ids = [it["id"] for it in after["transitions"]]
        assert ids == sorted(set(ids))
        assert {it["reason"] for it in (await client.get("/v1/events"))["transitions"]} >= {
            "Started"
        }
        synced = await client.until(
            "/v1/pods/default/web", lambda body: body["sync"]["unsent"] == 0
        )
        assert synced["sync"]["version"] > 1


async def test_it_answers_while_the_api_server_is_away(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async with a_node(tmp_path, server) as client:
        await ask(server, "POST", PODS, a_pod("web"))
        await client.until("/v1/pods?health=healthy", lambda body: bool(body["pods"]))
        await asyncio.to_thread(server.inject, *PARTITION)
        away = await client.until(
            "/v1/status", lambda body: not body["freshness"]["serverReachable"]
        )
        age = away["freshness"]["serverAgeSeconds"]
        older = await client.until(
            "/v1/pods", lambda body: body["freshness"]["serverAgeSeconds"] > age
        )
        assert [pod["name"] for pod in older["pods"]] == ["web"]
        assert (await client.get("/v1/node"))["node"]["name"] == "node"


async def test_the_kubelets_pages_tell_of_this_agent(
    tmp_path: Path, server: ApiServerThread
) -> None:
    async with a_node(tmp_path, server) as client:
        await ask(server, "POST", PODS, a_pod("web"))
        await client.until("/v1/pods?health=healthy", lambda body: bool(body["pods"]))
        summary = await client.until(
            "/stats/summary", lambda body: bool(body["pods"]) and "cpu" in body["node"]
        )
        assert summary["pods"][0]["podRef"]["name"] == "web"
        config = await client.get("/configz", authorized=True)
        assert config["kubeletconfig"]["nodeLeaseDurationSeconds"] == 4
        assert "\nruntime=simulated\n" in await client.get("/flagz", authorized=True)
        assert "podstatus statusz" in await client.get("/statusz", authorized=True)


def phases(document: Any) -> list[str]:
    """The phases in a timeline."""
    return [it["after"] for it in document["transitions"] if it["kind"] == "phase"]


async def test_a_pod_that_the_node_terminates_has_one_phase_in_all_views(
    tmp_path: Path, server: ApiServerThread
) -> None:
    path, timeline = "/v1/pods/default/web", "/v1/pods/default/web/timeline"
    async with a_node(tmp_path, server) as client:
        script = {"podstatus.dev/simulate": "stop=3s, stop-exit=1"}
        await ask(server, "POST", PODS, a_pod("web", **script))
        await client.until("/v1/status", lambda body: body["health"] == {"healthy": 1})
        await client.until(path, lambda body: body["sync"]["unsent"] == 0)
        await client.drain()
        body = await client.until("/v1/pods?health=ending", lambda body: body["pods"])
        (pod,) = body["pods"]
        assert pod["phase"] == "Running"
        assert pod["health"]["message"] == (
            "The pod is terminating; container c is still running. "
            "Terminated: Pod was terminated in response to imminent node shutdown."
        )
        _, shown = await asyncio.to_thread(server.request, "GET", f"{PODS}/web")
        (served,) = (await client.get("/pods", authorized=True))["items"]
        for status in (shown["status"], served["status"]):
            assert status["phase"] == "Running"
            assert "DisruptionTarget" not in {it["type"] for it in status["conditions"]}
        status = await client.get("/v1/status")
        assert (status["phases"], status["health"]) == ({"Running": 1}, {"ending": 1})
        assert (await client.get("/v1/node"))["node"]["requested"]["cpu"] == "250m"
        await client.until("/v1/status", lambda body: body["history"]["waiting"] == 0)
        assert phases(await client.get(timeline))[-1] == "Running"

        await client.until(path, lambda body: body["pod"]["health"]["state"] == "failed")
        after = await client.until(timeline, lambda body: phases(body)[-1] == "Failed")
        changes = [(it["kind"], it.get("subject", "")) for it in after["transitions"]]
        texts = [after_text(it) for it in after["transitions"]]
        ended = texts.index("terminated Error 1")
        assert ended < changes.index(("condition", "DisruptionTarget"))
        assert ended < texts.index("Failed")
