from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.apiserver.printing.printers import printer_for
from podstatus.apiserver.resources import (
    CONFIG_MAPS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCES,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICES,
    ResourceInfo,
)
from podstatus.apiserver.strategies.base import Document
from podstatus.kube.scalars.human_duration import format_age, human_duration
from podstatus.kube.scalars.time import UNSET_TIME, Time

NOW = Time.parse("2024-05-01T12:00:00Z")
SECOND = 10**9
MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND


@pytest.mark.parametrize(
    ("nanos", "expected"),
    [
        (-2 * SECOND, "<invalid>"),
        (-2 * SECOND + 1, "0s"),
        (0, "0s"),
        (119 * SECOND + 999_999_999, "119s"),
        (2 * MINUTE, "2m"),
        (9 * MINUTE + 59 * SECOND, "9m59s"),
        (10 * MINUTE + 59 * SECOND, "10m"),
        (179 * MINUTE, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 59 * MINUTE, "7h59m"),
        (8 * HOUR + 59 * MINUTE, "8h"),
        (47 * HOUR, "47h"),
        (2 * DAY, "2d"),
        (7 * DAY + 23 * HOUR, "7d23h"),
        (8 * DAY + 23 * HOUR, "8d"),
        (729 * DAY, "729d"),
        (730 * DAY, "2y"),
        (731 * DAY, "2y1d"),
        (8 * 365 * DAY + DAY, "8y"),
        (10**30, "292y"),
    ],
)
def test_duration_has_few_figures(nanos: int, expected: str) -> None:
    assert human_duration(nanos) == expected


def test_age_of_what_has_no_time_is_unknown() -> None:
    assert format_age(UNSET_TIME, NOW) == "<unknown>"


@given(st.integers(-(2**63), 2**63 - 1))
def test_duration_is_always_short(nanos: int) -> None:
    assert len(human_duration(nanos).strip("<>")) <= 7


def waiting(reason: str = "") -> Document:
    return {"state": {"waiting": {"reason": reason}}}


def ended(code: int, reason: str = "", **rest: Any) -> Document:
    return {"state": {"terminated": {"exitCode": code, "reason": reason, **rest}}}


def restarted(times: int, finished: str | None = None) -> Document:
    last = {"terminated": {"exitCode": 1, "finishedAt": finished}} if finished else {}
    return {"restartCount": times, "lastState": last}


RUNNING: Document = {"state": {"running": {}}, "ready": True}
UNREADY: Document = {"state": {"running": {}}, "ready": False}
SIDECAR: Document = RUNNING | {"started": True}


def named(prefix: str, statuses: list[Document]) -> list[Document]:
    return [{"name": f"{prefix}{index}"} | status for index, status in enumerate(statuses)]


def pod(
    containers: list[Document],
    init: list[Document] | None = None,
    sidecars: tuple[int, ...] = (),
    **status: Any,
) -> Document:
    specs = [
        {"name": f"i{index}"} | ({"restartPolicy": "Always"} if index in sidecars else {})
        for index in range(len(init or []))
    ]
    return {
        "metadata": {"name": "p", "creationTimestamp": "2024-05-01T11:58:00Z"},
        "spec": {"containers": [{"name": "c0"}, {"name": "c1"}], "initContainers": specs},
        "status": {
            "phase": "Running",
            "containerStatuses": named("c", containers),
            "initContainerStatuses": named("i", init or []),
            **status,
        },
    }


def true(*types: str) -> list[Document]:
    return [{"type": type_, "status": "True"} for type_ in types]


@pytest.mark.parametrize(
    ("document", "ready", "expected"),
    [
        (pod([], phase="Pending"), "0/2", "Pending"),
        (pod([RUNNING, UNREADY]), "1/2", "Running"),
        (pod([], reason="Evicted", phase="Failed"), "0/2", "Evicted"),
        (pod([waiting("A"), waiting("B")]), "0/2", "A"),
        (pod([waiting(), waiting("B")]), "0/2", "B"),
        (pod([ended(0), RUNNING]), "1/2", "ExitCode:0"),
        (pod([ended(137, signal=9), RUNNING]), "1/2", "Signal:9"),
        (pod([ended(0, "Completed"), RUNNING], conditions=true("Ready")), "1/2", "Running"),
        (pod([ended(0, "Completed"), RUNNING]), "1/2", "NotReady"),
        (pod([ended(0, "Completed"), ended(1, "Error")]), "0/2", "Error"),
        (pod([ended(0, "Completed"), ended(0, "Completed")]), "0/2", "Completed"),
        (pod([], [waiting()]), "0/2", "Init:0/1"),
        (pod([], [ended(0), waiting("PodInitializing")]), "0/2", "Init:1/2"),
        (pod([], [waiting("ImagePullBackOff")]), "0/2", "Init:ImagePullBackOff"),
        (pod([], [ended(3)]), "0/2", "Init:ExitCode:3"),
        (pod([], [ended(3, signal=15)]), "0/2", "Init:Signal:15"),
        (pod([], [ended(3, "Error")]), "0/2", "Init:Error"),
        (pod([waiting("PodInitializing")], [ended(0)]), "0/2", "PodInitializing"),
        (pod([RUNNING], [SIDECAR], (0,)), "2/3", "Running"),
        (pod([], [UNREADY], (0,)), "0/3", "Init:0/1"),
        (pod([RUNNING], [waiting("X")], conditions=true("Initialized")), "1/2", "Init:X"),
        (
            pod([], conditions=[{"type": "PodScheduled", "reason": "SchedulingGated"}]),
            "0/2",
            "SchedulingGated",
        ),
    ],
)
def test_pod_shows_what_matters_most(document: Document, ready: str, expected: str) -> None:
    assert printer_for(PODS).cells(document, NOW)[1:3] == [ready, expected]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, "Terminating"),
        ({"phase": "Succeeded"}, "Succeeded"),
        ({"reason": "NodeLost"}, "Unknown"),
    ],
)
def test_pod_that_is_being_deleted(status: Document, expected: str) -> None:
    document = pod([], **status)
    document["metadata"]["deletionTimestamp"] = "2024-05-01T12:00:00Z"
    assert printer_for(PODS).cells(document, NOW)[2] == expected


EARLY, LATE = "2024-05-01T11:00:00Z", "2024-05-01T11:59:55Z"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (pod([RUNNING, RUNNING]), "0"),
        (pod([RUNNING | restarted(2)]), "2"),
        (pod([RUNNING | restarted(0, LATE)]), "0"),
        (pod([RUNNING | restarted(1, LATE), RUNNING | restarted(2, EARLY)]), "3 (5s ago)"),
        (pod([RUNNING], [ended(0) | restarted(4, LATE)]), "0"),
        (pod([], [ended(1) | restarted(4, LATE)]), "4 (5s ago)"),
        (pod([RUNNING], [SIDECAR | restarted(1, EARLY)], (0,)), "1 (60m ago)"),
    ],
)
def test_restarts_are_those_of_what_runs_now(document: Document, expected: str) -> None:
    assert printer_for(PODS).cells(document, NOW)[3] == expected


def test_wide_cells_of_a_pod() -> None:
    document = pod([], podIPs=[{"ip": "::1"}], nominatedNodeName="n2", conditions=true("A"))
    document["spec"] |= {
        "nodeName": "n1",
        "readinessGates": [{"conditionType": "A"}, {"conditionType": "B"}],
    }
    assert printer_for(PODS).cells(document, NOW)[4:] == ["2m", "::1", "n1", "n2", "1/2"]
    assert printer_for(PODS).cells(pod([]), NOW)[5:] == ["<none>"] * 4
    addressed = pod([], podIP="10.0.0.1", podIPs=[{"ip": "::1"}])
    assert printer_for(PODS).cells(addressed, NOW)[5] == "10.0.0.1"


def test_wide_cells_of_a_node() -> None:
    node: Document = {
        "metadata": {
            "name": "n",
            "labels": {
                "node-role.kubernetes.io/worker": "",
                "node-role.kubernetes.io/": "",
                "kubernetes.io/role": "edge",
            },
        },
        "spec": {"unschedulable": True},
        "status": {
            "conditions": [{"type": "Ready", "status": "Unknown"}],
            "addresses": [
                {"type": "Hostname", "address": "n"},
                {"type": "InternalIP", "address": "10.0.0.1"},
            ],
            "nodeInfo": {"kubeletVersion": "v1", "kernelVersion": "6.1", "architecture": "arm64"},
        },
    }
    assert printer_for(NODES).cells(node, NOW) == [
        "n",
        "NotReady,SchedulingDisabled",
        "edge,worker",
        "<unknown>",
        "v1",
        "10.0.0.1",
        "<none>",
        "<unknown>",
        "6.1 (arm64)",
        "<unknown>",
    ]


@pytest.mark.parametrize(
    ("times", "last", "first", "count"),
    [
        ({}, "<unknown>", "<unknown>", 1),
        ({"firstTimestamp": EARLY, "count": 3}, "60m", "60m", 3),
        ({"firstTimestamp": EARLY, "lastTimestamp": LATE}, "5s", "60m", 1),
        ({"eventTime": "2024-05-01T11:59:50.000000Z"}, "10s", "10s", 1),
        (
            {
                "eventTime": "2024-05-01T11:59:50.000000Z",
                "series": {"count": 7, "lastObservedTime": "2024-05-01T11:59:59.000000Z"},
            },
            "1s",
            "10s",
            7,
        ),
        ({"lastTimestamp": "yesterday"}, "<unknown>", "<unknown>", 1),
    ],
)
def test_times_of_an_event(times: Document, last: str, first: str, count: int) -> None:
    cells = printer_for(EVENTS).cells({"metadata": {"name": "e"}, **times}, NOW)
    assert (cells[0], cells[7], cells[8]) == (last, first, count)


def test_event_says_who_saw_what() -> None:
    event = {
        "metadata": {"name": "e"},
        "type": "Normal",
        "reason": "Started",
        "message": " started\n",
        "involvedObject": {"kind": "Pod", "name": "a", "fieldPath": "spec"},
        "source": {"component": "kubelet"},
        "reportingInstance": "n1",
    }
    cells = printer_for(EVENTS).cells(event, NOW)
    assert cells[1:7] == ["Normal", "Started", "pod/a", "spec", "kubelet, n1", "started"]
    assert cells[9] == "e"


@pytest.mark.parametrize(
    ("resource", "document", "cells"),
    [
        (NAMESPACES, {"status": {"phase": "Active"}}, ["x", "Active", "2m"]),
        (CONFIG_MAPS, {"data": {"a": ""}, "binaryData": {"b": ""}}, ["x", 2, "2m"]),
        (SECRETS, {"type": "Opaque", "data": None}, ["x", "Opaque", 0, "2m"]),
        (SERVICE_ACCOUNTS, {}, ["x", "2m"]),
    ],
)
def test_plain_resources(resource: ResourceInfo, document: Document, cells: list[Any]) -> None:
    metadata = {"name": "x", "creationTimestamp": "2024-05-01T11:58:00Z"}
    assert printer_for(resource).cells({"metadata": metadata, **document}, NOW) == cells


@pytest.mark.parametrize(
    ("spec", "status", "cells"),
    [
        (
            {
                "type": "ClusterIP",
                "clusterIPs": ["10.0.0.1"],
                "ports": [
                    {"port": 80, "protocol": "TCP"},
                    {"port": 53, "nodePort": 30053, "protocol": "UDP"},
                ],
                "selector": {"b": "2", "a": "1"},
            },
            {},
            ["ClusterIP", "10.0.0.1", "<none>", "80/TCP,53:30053/UDP", "2m", "a=1,b=2"],
        ),
        (
            {"type": "NodePort", "externalIPs": ["192.0.2.1", "192.0.2.2"]},
            {},
            ["NodePort", "<none>", "192.0.2.1,192.0.2.2", "<none>", "2m", "<none>"],
        ),
        (
            {"type": "LoadBalancer", "clusterIPs": ["None"]},
            {},
            ["LoadBalancer", "None", "<pending>", "<none>", "2m", "<none>"],
        ),
        (
            {"type": "LoadBalancer", "externalIPs": ["192.0.2.9"]},
            {"loadBalancer": {"ingress": [{"hostname": "lb"}, {"ip": "192.0.2.3"}]}},
            ["LoadBalancer", "<none>", "192.0.2.3,lb,192.0.2.9", "<none>", "2m", "<none>"],
        ),
        (
            {"type": "ExternalName", "externalName": "example.com"},
            {},
            ["ExternalName", "<none>", "example.com", "<none>", "2m", "<none>"],
        ),
    ],
)
def test_services(spec: Document, status: Document, cells: list[Any]) -> None:
    metadata = {"name": "x", "creationTimestamp": "2024-05-01T11:58:00Z"}
    document = {"metadata": metadata, "spec": spec, "status": status}
    assert printer_for(SERVICES).cells(document, NOW) == ["x", *cells]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda resource: resource.kind)
@pytest.mark.parametrize("section", [{}, None])
def test_empty_objects_have_a_cell_for_every_column(
    resource: ResourceInfo, section: Document | None
) -> None:
    document: Document = {"metadata": {"name": "x"}, "spec": section, "status": section}
    printer = printer_for(resource)
    assert len(printer.cells(document, NOW)) == len(printer.columns)
