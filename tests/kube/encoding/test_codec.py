import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.encoding.codec import DecodeError, decode, from_document, to_document
from podstatus.kube.objects.containers import Container, Probe, ResourceRequirements
from podstatus.kube.objects.meta import ObjectMeta
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStatus,
    PodCondition,
    PodIP,
    PodStatus,
)
from podstatus.kube.scalars.quantity import Quantity
from podstatus.kube.scalars.time import Time

# Reading


@pytest.mark.parametrize("text", ['{"kind":"Pod"}', b'{"kind":"Pod"}'])
def test_text_and_bytes_are_read(text: str | bytes) -> None:
    assert decode(text, Pod) == Pod(kind="Pod")


def test_unknown_fields_are_dropped() -> None:
    assert decode('{"kind": "Pod", "flavour": {"sweet": [1]}}', Pod) == Pod(kind="Pod")


def test_an_unknown_phase_is_read_as_it_is() -> None:
    assert decode('{"phase": "Hibernating"}', PodStatus).phase == "Hibernating"


@pytest.mark.parametrize(
    "document",
    [
        {"metadata": None, "spec": None, "status": None, "kind": None},
        {"metadata": {"labels": None, "generation": None, "creationTimestamp": None}},
        {"status": {"conditions": None, "startTime": None, "resources": None}},
    ],
)
def test_null_is_read_as_absent(document: object) -> None:
    assert from_document(document, Pod) == Pod()


def test_a_null_element_is_read_as_an_empty_one() -> None:
    status = from_document(
        {
            "conditions": [None],
            "podIPs": [{"ip": None}],
            "allocatedResources": {"cpu": None},
        },
        PodStatus,
    )
    assert status.conditions == (PodCondition(),)
    assert status.pod_ips == (PodIP(),)
    assert status.allocated_resources == {"cpu": "0"}
    meta = from_document({"finalizers": ["a", None], "labels": {"b": None, "c": "d"}}, ObjectMeta)
    assert meta == ObjectMeta(finalizers=("a", ""), labels={"b": "", "c": "d"})


def test_nulls_beside_other_things_are_read_as_absent() -> None:
    ready = {"type": "Ready", "reason": None}
    status = from_document({"conditions": [ready, None], "phase": None}, PodStatus)
    assert status == PodStatus(conditions=(PodCondition(type="Ready"), PodCondition()))


def test_an_empty_list_and_no_list_are_different_things() -> None:
    assert from_document({"containerStatuses": []}, PodStatus).container_statuses == ()
    assert from_document({}, PodStatus).container_statuses is None


def test_surprise_30_odd_times_are_read() -> None:
    for text in (
        "2024-01-31T09:30:00.25Z",
        "2024-01-31T09:30:00,25Z",
        "2024-01-31T9:30:00.25Z",
        "2024-02-01T09:30:00.25+24:00",
    ):
        status = from_document({"startTime": text}, PodStatus)
        assert status.start_time == Time.parse("2024-01-31T09:30:00.250Z"), text
    unset = from_document({"startTime": "0001-01-01T00:00:00Z"}, PodStatus)
    assert to_document(unset) == {"startTime": None}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "cannot read a Pod: not JSON"),
        ("{", "cannot read a Pod: not JSON"),
        (b'{"kind": "\xff"}', "cannot read a Pod: not JSON"),
        ("null", "cannot read a Pod"),
        (b'{"x":' + b"[" * 100_000, "cannot read a Pod"),
        ("[]", "cannot read a Pod"),
        ('{"status": 5}', r"\$\.status"),
        ('{"metadata": {"generation": "7"}}', r"\$\.metadata\.generation"),
        ('{"status": {"startTime": "yesterday"}}', r"'yesterday'.*\$\.status\.startTime"),
        ('{"status": {"allocatedResources": {"cpu": "lots"}}}', "'lots'.*allocatedResources"),
        ('{"status": {"reason": null, "startTime": 5}}', "startTime"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(text: str | bytes, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        decode(text, Pod)


# Writing


def test_what_is_empty_is_left_out_unless_go_always_prints_it() -> None:
    assert to_document(Pod()) == {
        "metadata": {},
        "spec": {"containers": None},
        "status": {},
    }
    assert to_document(ContainerStatus()) == {
        "name": "",
        "state": {},
        "lastState": {},
        "ready": False,
        "restartCount": 0,
        "image": "",
        "imageID": "",
    }
    assert to_document(PodCondition()) == {
        "type": "",
        "status": "",
        "lastProbeTime": None,
        "lastTransitionTime": None,
    }


@pytest.mark.parametrize(
    ("status", "document"),
    [
        (PodStatus(conditions=(), allocated_resources={}, phase=""), {}),
        (PodStatus(resources=ResourceRequirements()), {"resources": {}}),
        (PodStatus(start_time=Time()), {"startTime": None}),
    ],
)
def test_lists_and_maps_vanish_when_empty_and_pointers_stay(
    status: PodStatus, document: object
) -> None:
    assert to_document(status) == document


def test_pointers_to_zero_values_stay() -> None:
    assert to_document(ContainerStatus(started=False))["started"] is False
    assert to_document(PodSpec(priority=0))["priority"] == 0
    assert to_document(Probe(termination_grace_period_seconds=0)) == {
        "terminationGracePeriodSeconds": 0
    }


def test_names_are_those_of_kubernetes() -> None:
    status = PodStatus(host_ip="1.2.3.4", pod_ips=(PodIP(ip="5.6.7.8"),), qos_class="Burstable")
    assert to_document(status) == {
        "hostIP": "1.2.3.4",
        "podIPs": [{"ip": "5.6.7.8"}],
        "qosClass": "Burstable",
    }


def test_times_are_written_in_whole_seconds_of_utc() -> None:
    state = ContainerState(
        running=ContainerStateRunning(started_at=Time.parse("2024-01-31T11:30:00.999+02:00"))
    )
    assert to_document(state) == {"running": {"startedAt": "2024-01-31T09:30:00Z"}}


@pytest.mark.parametrize(
    ("spelling", "written"),
    [
        ("1.500", "1.500"),
        ("+1", "+1"),
        ("3.", "3."),
        ("00012Ki", "00012Ki"),
        ("1E3", "1E3"),
        ("1.5", "1500m"),
        ("1000m", "1"),
        ("1024Ki", "1Mi"),
        ("0.0000000001", "1n"),
    ],
)
def test_surprise_29_quantities_are_not_always_respelled(spelling: str, written: str) -> None:
    status = from_document({"allocatedResources": {"cpu": spelling}}, PodStatus)
    assert to_document(status) == {"allocatedResources": {"cpu": written}}


def test_bytes_that_are_no_text_become_replacement_characters() -> None:
    cut = "€".encode()[:2].decode(errors="surrogateescape")
    document = to_document(ContainerStateTerminated(message=cut))
    assert document["message"] == "\N{REPLACEMENT CHARACTER}" * 2
    named = to_document(ObjectMeta(labels={cut: cut}))
    assert named == {"labels": {"\ufffd\ufffd": "\ufffd\ufffd"}}


def test_a_port_is_a_number_or_a_name() -> None:
    for port in (8080, "http", 0, ""):
        document = {"httpGet": {"port": port}}
        assert to_document(from_document(document, Probe)) == document


# Both ways

TEXTS = st.sampled_from(["", "a", "Running", "grün", "line\nbreak", "\udce2\udc82"])
TIMES = st.sampled_from(
    [
        Time(),
        Time.parse("2024-01-31T09:30:00Z"),
        Time.parse("2019-12-31T23:59:59.999999999Z"),
    ]
)
AMOUNTS = st.none() | st.dictionaries(
    st.sampled_from(["cpu", "memory"]),
    st.sampled_from(["0", "1000m", "1.5Gi", "1e3", "-5", "0.0000000001"]).map(Quantity),
)
CONDITIONS = st.builds(
    PodCondition, type=TEXTS, status=TEXTS, last_transition_time=TIMES, reason=TEXTS
)
STATES = st.builds(
    ContainerState,
    running=st.none() | st.builds(ContainerStateRunning, started_at=TIMES),
    terminated=st.none()
    | st.builds(ContainerStateTerminated, exit_code=st.integers(0, 255), message=TEXTS),
)
CONTAINERS = st.builds(
    ContainerStatus,
    name=TEXTS,
    state=STATES,
    started=st.none() | st.booleans(),
    allocated_resources=AMOUNTS,
    resources=st.none() | st.builds(ResourceRequirements, limits=AMOUNTS),
)
STATUSES = st.builds(
    PodStatus,
    phase=TEXTS,
    start_time=st.none() | TIMES,
    conditions=st.none() | st.lists(CONDITIONS, max_size=2).map(tuple),
    container_statuses=st.none() | st.lists(CONTAINERS, max_size=2).map(tuple),
    allocated_resources=AMOUNTS,
)


@given(STATUSES)
def test_what_was_written_once_is_written_the_same_again(status: PodStatus) -> None:
    document = to_document(status)
    again = from_document(document, PodStatus)
    # Go decodes null for an unset time, so the pointer is lost.
    expected = {key: value for key, value in document.items() if value is not None}
    assert to_document(again) == expected


def test_a_container_survives_the_way_there_and_back() -> None:
    container = Container(name="app", resources=ResourceRequirements(limits={"cpu": Quantity("2")}))
    assert from_document(to_document(container), Container) == container
