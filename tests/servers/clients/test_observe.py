"""`podstatus observe` on both servers: it shows what they have, whatever happens to them."""

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podstatus.cli.client.query_api_client import decode_response
from podstatus.client import ApiClient
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.client.rest.request import MERGE
from podstatus.client.rest.resources import PODS
from podstatus.kube.api_errors import GoneError
from podstatus.kube.encoding.codec import decode
from podstatus.kube.objects.pod import Pod
from podstatus.observe.summary.pod import PodSummary, summarize_pod
from podstatus.testing.servers.access import ServerAccess
from podstatus.web.v1.wire import PodView
from tests.support.data.deployment_pods import pod, status
from tests.support.processes.agent_process import run_command, until
from tests.support.processes.api_servers import NODES, RealServer, Server
from tests.support.processes.mortal_server import Mortal, mortal
from tests.support.processes.observer_process import ObserverProcess, observer
from tests.support.web.transition_text import after_text, before_text

Document = dict[str, Any]

pytestmark = pytest.mark.slow

_CODES = (0, 1, 3)
_AT_ONCE = b'{"gracePeriodSeconds": 0}'


@pytest.fixture
def mortal_server(server: Server, tmp_path: Path) -> Iterator[Mortal]:
    with mortal(server, tmp_path / "mortal") as found:
        yield found


def new_namespace(access: ServerAccess, name: str) -> str:
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
    code, answer = access.request("POST", "/api/v1/namespaces", body)
    assert code in (201, 409), answer
    return name


def crashed(number: int, restarts: int, code: int) -> Document:
    """The status of a pod whose container ended, and waits to be started again."""
    told = status(number, restarts=restarts)
    ended = {"exitCode": code, "reason": "Error" if code else "Completed"}
    told["containerStatuses"][0] |= {
        "ready": False,
        "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
        "lastState": {"terminated": ended},
    }
    for condition in told["conditions"]:
        if condition["type"] in ("Ready", "ContainersReady"):
            condition |= {"status": "False", "reason": "ContainersNotReady"}
    return told


class Storm:
    """Creates, changes and deletes pods, as chance will have it."""

    def __init__(self, access: ServerAccess, namespace: str, seed: int) -> None:
        self._access = access
        self._namespace = namespace
        self._random = random.Random(seed)
        self._next = 0

    def blow(self, changes: int) -> None:
        asyncio.run(self._blow(changes))

    async def _blow(self, changes: int) -> None:
        async with ApiClient(kubeconfig_config(self._access.kubeconfig)) as client:
            for _ in range(changes // 4):
                await asyncio.gather(*(self._change(client) for _ in range(4)))

    async def _change(self, client: ApiClient) -> None:
        roll, number = self._random.random(), self._random.randrange(max(1, self._next))
        if roll < 0.3 or not self._next:
            number, self._next = self._next, self._next + 1
            body = msgspec.json.encode(pod(number, nodes=3))
            await client.create(PODS, body, namespace=self._namespace)
            return
        name = pod(number)["metadata"]["name"]
        try:
            if roll < 0.4:
                await client.delete(PODS, name, namespace=self._namespace, options=_AT_ONCE)
                return
            restarts, code = self._random.randrange(4), self._random.choice(_CODES)
            told = status(number) if roll < 0.7 else crashed(number, restarts, code)
            await client.patch(
                PODS,
                name,
                msgspec.json.encode({"status": told}),
                namespace=self._namespace,
                subresource="status",
                content_type=MERGE,
            )
        except GoneError:
            pass  # deleted before


def on_server(access: ServerAccess, namespace: str) -> dict[str, PodSummary]:
    """What the board is to show."""
    code, listed = access.request("GET", f"/api/v1/namespaces/{namespace}/pods")
    assert code == 200, listed
    pods = [summarize_pod(decode(msgspec.json.encode(it), Pod)) for it in listed["items"]]
    return {it.uid: it for it in pods}


def on_board(looks_on: ObserverProcess) -> dict[str, PodSummary]:
    shown = (decode_response(msgspec.json.encode(it), PodView) for it in looks_on.pods().values())
    fields = PodSummary.__struct_fields__
    return {it.uid: PodSummary(**{name: getattr(it, name) for name in fields}) for it in shown}


def wait_equal(looks_on: ObserverProcess, access: ServerAccess, namespace: str) -> int:
    """Come back when the board is as the server has it; the number of pods."""

    def is_equal() -> bool:
        return on_board(looks_on) == on_server(access, namespace)

    until(is_equal, looks_on.log)
    return len(on_server(access, namespace))


def moments(looks_on: ObserverProcess) -> list[Document]:
    """All that was noted, once nothing waits to be."""
    until(lambda: not looks_on.ask("/v1/status")["history"]["waiting"])
    found: list[Document] = []
    for shown in {(m.namespace, m.name) for m in _all_noted(looks_on)}:
        found += looks_on.ask(f"/v1/pods/{shown[0]}/{shown[1]}/timeline?limit=5000")["transitions"]
    return found


def _all_noted(looks_on: ObserverProcess) -> list[Any]:
    from podstatus.observe.history.sqlite_store import open_history_reader  # noqa: PLC0415

    with open_history_reader(looks_on.root_dir / "history.db") as history:
        return history.entries_after(0, limit=100_000)


def check_history(looks_on: ObserverProcess, access: ServerAccess, namespace: str) -> None:
    """Nothing was told twice, and what was told last is what is so."""
    noted = moments(looks_on)
    often = Counter((m["uid"], m["kind"]) for m in noted if m["kind"] in ("seen", "finished"))
    assert set(often.values()) == {1}
    last: dict[tuple[str, str, str], str] = {}
    for moment in noted:
        key = moment["uid"], moment["kind"], moment.get("subject", "")
        if moment["kind"] in ("phase", "condition", "readiness", "restart"):
            assert last.get(key, before_text(moment)) == before_text(moment), moment
            assert before_text(moment) != after_text(moment), moment
        last[key] = after_text(moment)
    there = on_server(access, namespace)
    for uid, summary in there.items():
        assert last[uid, "phase", ""] == summary.phase
        for condition in summary.conditions:
            assert last[uid, "condition", condition.type] == condition.status
    finished = {uid for uid, kind in often if kind == "finished"}
    seen = {uid for uid, kind in often if kind == "seen"}
    assert finished == seen - there.keys()


def test_the_board_is_as_the_server_has_it_after_a_storm(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    access = server.access
    with observer(tmp_path, access.kubeconfig, "--namespace", namespace) as looks_on:
        looks_on.start()
        Storm(access, namespace, seed=1).blow(400)
        assert wait_equal(looks_on, access, namespace) > 20
        check_history(looks_on, access, namespace)
        assert looks_on.ask("/v1/status")["history"]["overflowed"] == 0
        assert "Traceback" not in looks_on.log()
        assert looks_on.stop() == 0


def test_a_server_that_is_killed_and_forgets_is_followed_again(
    mortal_server: Mortal, tmp_path: Path
) -> None:
    access = mortal_server.access
    namespace = new_namespace(access, "observed-kills")
    storm = Storm(access, namespace, seed=2)
    with observer(tmp_path, access.kubeconfig, "--namespace", namespace) as looks_on:
        looks_on.start()
        storm.blow(80)
        wait_equal(looks_on, access, namespace)
        mortal_server.kill()
        until(lambda: not looks_on.ask("/v1/status")["freshness"]["serverReachable"])
        assert looks_on.ask("/v1/status")["pods"] > 0
        mortal_server.start()
        storm.blow(40)
        with looks_on.standing_still():
            # What follows is not on its way to it already.
            mortal_server.kill()
            mortal_server.start()
            storm.blow(40)
            mortal_server.forget()
        wait_equal(looks_on, access, namespace)
        assert "watch expired, will list again: pods" in looks_on.log()
        check_history(looks_on, access, namespace)
        # A watch that was refused has to last for a moment before it is trusted.
        until(lambda: looks_on.ask("/v1/status")["freshness"]["serverReachable"])
        assert "Traceback" not in looks_on.log()


def test_an_observer_that_comes_back_notes_what_happened_meanwhile(
    server: Server, namespace: str, tmp_path: Path
) -> None:
    access = server.access
    storm = Storm(access, namespace, seed=3)
    with observer(tmp_path, access.kubeconfig, "--namespace", namespace) as looks_on:
        looks_on.start()
        storm.blow(120)
        wait_equal(looks_on, access, namespace)
        moments(looks_on)
        looks_on.kill()
        storm.blow(120)
        looks_on.start()
        wait_equal(looks_on, access, namespace)
        check_history(looks_on, access, namespace)
        told = len(moments(looks_on))
        assert looks_on.stop() == 0
        looks_on.start()
        wait_equal(looks_on, access, namespace)
        assert len(moments(looks_on)) == told


def test_labels_and_nodes_select(server: Server, namespace: str, tmp_path: Path) -> None:
    access = server.access
    for number in range(12):
        code, answer = server.client.create(
            f"/api/v1/namespaces/{namespace}/pods", pod(number, nodes=3, per_deployment=6)
        )
        assert code == 201, answer
    chosen = ("--selector", "app.kubernetes.io/name=shop-0001", "--node", "worker-001")
    with observer(tmp_path, access.kubeconfig, "--namespace", namespace, *chosen) as looks_on:
        looks_on.start()
        looks_on.wait_pods(lambda pods: len(pods) == 2)
        assert {it["node"] for it in looks_on.pods().values()} == {"worker-001"}


def test_a_server_that_is_away_is_told_in_a_line_and_waited_for(
    mortal_server: Mortal, tmp_path: Path
) -> None:
    access = mortal_server.access
    mortal_server.kill()
    with observer(tmp_path, access.kubeconfig, "--namespace", "default") as looks_on:
        looks_on.start()
        knows = looks_on.ask("/v1/status")["freshness"]
        assert not knows["serverReachable"]
        (line,) = until(lambda: warnings(looks_on))
        assert "API server is not reachable" in line
        mortal_server.start()
        until(lambda: looks_on.ask("/v1/status")["freshness"]["serverReachable"])


def warnings(looks_on: ObserverProcess) -> list[str]:
    return [line for line in looks_on.log().splitlines() if "WARNING" in line]


def refused(kubeconfig: Path, folder: Path, *options: str) -> tuple[int, list[str]]:
    """The exit code of one that is not let look on, and what it says."""
    words = ("observe", "--kubeconfig", str(kubeconfig), "--root-dir", str(folder), *options)
    done = run_command(*words, "--port", "0")
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


def test_who_is_not_known_is_told_so_in_one_line(server: Server, tmp_path: Path) -> None:
    text = server.access.kubeconfig.read_text()
    wrong = tmp_path / "wrong"
    wrong.write_text(text.replace(server.access.token, "wrong"))
    code, (line,) = refused(wrong, tmp_path / "root")
    assert code == 2
    assert line.startswith("podstatus: cannot list pods: ")
    assert "Unauthorized" in line


def test_who_may_not_is_told_what_is_missing_in_one_line(
    real_server: RealServer, tmp_path: Path
) -> None:
    # A node may list the pods of its own node, and no others.
    access = real_server.node_access(NODES[25])
    code, (line,) = refused(access.kubeconfig, tmp_path / "root")
    assert code == 2
    assert "forbidden" in line
    assert line.endswith("required permissions: examples/observer-rbac.yaml")


def test_a_selector_that_is_none_is_told_in_one_line(server: Server, tmp_path: Path) -> None:
    code, (line,) = refused(server.access.kubeconfig, tmp_path / "root", "--selector", "a=b=c")
    assert code == 2
    assert line.endswith("check the selectors")
