"""/stats/summary and the z-pages."""

import json
from typing import Any

import msgspec
import pytest

from podstatus.kube.scalars.time import Time
from podstatus.runtime.port import RuntimePod
from podstatus.web.errors import HttpError
from podstatus.web.kubelet.stats import stats_summary
from podstatus.web.kubelet.zpages import configz, flagz, statusz
from tests.support.web.fake_runtime import FakePods
from tests.support.web.fake_status_view import ABOUT, AT, FakeMachine, a_snapshot
from tests.support.web.node_server import TOKEN, Scene, app_pod


def running() -> RuntimePod:
    (pod,) = FakePods(app_pod()).running_pods()
    facts = pod.facts
    started = [
        msgspec.structs.replace(it, started_at=Time.parse("2026-11-15T11:00:00.5Z"))
        for it in facts.containers
    ]
    return msgspec.structs.replace(
        pod, facts=msgspec.structs.replace(facts, containers=tuple(started))
    )


def summary(query: dict[str, list[str]] | None = None, *, measured: bool = True) -> Any:
    pod = running()
    snapshot = a_snapshot(pod.uid) if measured else a_snapshot()
    return json.loads(stats_summary("node-1", FakeMachine(snapshot), [pod], query or {}))


def test_the_node_is_summed_up_as_the_kubelet_does() -> None:
    node = summary()["node"]
    at = "2026-11-15T12:00:00Z"
    filesystem = {
        "time": at,
        "availableBytes": 500,
        "capacityBytes": 1000,
        "usedBytes": 400,
        "inodesFree": 4,
        "inodes": 10,
        "inodesUsed": 6,
    }
    unused = {k: v for k, v in filesystem.items() if k not in ("usedBytes", "inodesUsed")}
    assert node == {
        "nodeName": "node-1",
        "startTime": "2026-11-15T11:00:00Z",
        "cpu": {"time": at, "usageNanoCores": 500_000_000, "usageCoreNanoSeconds": 10_000_000_000},
        "memory": {"time": at, "availableBytes": 2**29, "workingSetBytes": 2**29},
        "fs": filesystem,
        "runtime": {"imageFs": unused, "containerFs": unused},
        "rlimit": {"time": at, "maxpid": 32768, "curproc": 100},
    }


def test_pods_and_their_containers_are_summed_up() -> None:
    (pod,) = summary()["pods"]
    at = "2026-11-15T12:00:00Z"
    used = {
        "cpu": {"time": at, "usageNanoCores": 250_000_000, "usageCoreNanoSeconds": 1_500_000_000},
        "memory": {"time": at, "workingSetBytes": 2**20},
    }
    assert pod == {
        "podRef": {"name": "p", "namespace": "ns", "uid": running().uid},
        "startTime": "2026-11-15T11:00:00Z",
        "containers": [{"name": "app", "startTime": "2026-11-15T11:00:00Z", **used}],
        **used,
        "ephemeral-storage": {
            "time": at,
            "availableBytes": 500,
            "capacityBytes": 1000,
            "usedBytes": 7,
            "inodesFree": 4,
            "inodes": 10,
        },
        "process_stats": {"process_count": 3},
    }


def test_processors_and_memory_alone_can_be_asked_for() -> None:
    document = summary({"only_cpu_and_memory": ["true"]})
    assert set(document["node"]) == {"nodeName", "startTime", "cpu", "memory"}
    assert set(document["pods"][0]) == {"podRef", "startTime", "containers", "cpu", "memory"}


def test_unmeasured_usage_is_omitted() -> None:
    (pod,) = summary(measured=False)["pods"]
    assert set(pod) == {"podRef", "startTime", "containers"}
    assert set(pod["containers"][0]) == {"name", "startTime"}


async def test_before_the_first_reading_there_is_nothing_to_tell(scene: Scene) -> None:
    with pytest.raises(HttpError) as refused:
        stats_summary("node-1", FakeMachine(), [], {})
    assert refused.value.code == 503
    assert (await scene.get("/stats/summary", token=""))[0] == 503


def test_configz_has_upstreams_form() -> None:
    assert json.loads(configz(ABOUT)) == {
        "kubeletconfig": {"kind": "KubeletConfiguration", "maxPods": 110}
    }


def test_flags_are_sorted_lines() -> None:
    lines = flagz(ABOUT).splitlines()
    assert lines[1] == "podstatus flagz"
    assert lines[2].startswith("Warning: This endpoint is not meant to be machine parseable")
    assert lines[3:] == ["manifest-url=CLASSIFIED", "max-pods=110", "v=2"]


def test_status_says_since_when() -> None:
    text = statusz(ABOUT, AT + (25 * 3600 + 61) * 10**9)
    assert "Started: 2026-11-15T12:00:00Z\n" in text
    assert "Up: 25 hr 01 min 01 sec\n" in text
    assert "Binary version: 1.2.3\n" in text
    assert " /stats /statusz /v1\n" in text


@pytest.mark.parametrize("path", ["/configz", "/flagz", "/statusz"])
async def test_zpages_need_authorization(scene: Scene, path: str) -> None:
    assert [(await scene.get(path, token=token))[0] for token in ("", TOKEN)] == [401, 200]
