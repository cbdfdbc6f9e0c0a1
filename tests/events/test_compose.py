import re

import pytest

from podstatus.events.new_event import PendingEvent, event_name, new_event
from podstatus.events.object_references import node_reference, pod_reference
from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.event import EventSource
from podstatus.testing.builders import make_pod

SOURCE = EventSource(component="kubelet", host="node-a")
AT = 1_706_693_400_123_456_789


def test_an_event_is_written_as_the_kubelet_writes_it() -> None:
    about = pod_reference(make_pod("p", namespace="n", uid="u"))
    event = new_event(PendingEvent(about, "Warning", "BackOff", "Back-off", AT), SOURCE)
    assert to_document(event) == {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": "p.17af649adedcbd15", "namespace": "n"},
        "involvedObject": {
            "kind": "Pod",
            "namespace": "n",
            "name": "p",
            "uid": "u",
            "apiVersion": "v1",
        },
        "reason": "BackOff",
        "message": "Back-off",
        "source": {"component": "kubelet", "host": "node-a"},
        "firstTimestamp": "2024-01-31T09:30:00Z",
        "lastTimestamp": "2024-01-31T09:30:00Z",
        "count": 1,
        "type": "Warning",
        "eventTime": None,
        "reportingComponent": "kubelet",
        "reportingInstance": "node-a",
    }


def test_what_is_in_no_namespace_has_its_events_in_default() -> None:
    event = new_event(PendingEvent(node_reference("x"), "Normal", "Starting", "", AT), SOURCE)
    assert event.metadata.namespace == "default"
    assert event.involved_object.namespace == ""


@pytest.mark.parametrize("name", ["p" * 240, "Upper", "under_score", "", ".p", "p."])
def test_where_a_name_cannot_grow_a_uuid_stands_for_it(name: str) -> None:
    """Upstream: kubernetes#127594."""
    uuid = event_name(name, AT)
    assert re.fullmatch("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", uuid)
    assert uuid == event_name(name, AT)
    assert uuid != event_name(name, AT + 1)


def test_the_longest_name_that_can_grow_does() -> None:
    assert event_name("p" * 236, AT) == f"{'p' * 236}.{AT:x}"
    assert len(event_name("p" * 236, AT)) == 253


def test_annotations_are_those_of_the_event() -> None:
    pending = PendingEvent(node_reference("x"), "Warning", "Evicted", "", AT, {"key": "value"})
    assert new_event(pending, SOURCE).metadata.annotations == {"key": "value"}
