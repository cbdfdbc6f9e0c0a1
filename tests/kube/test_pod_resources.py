"""Requests and limits of a pod: sums, maximums and pod-level resources."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.containers import Container, ResourceRequirements
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.kube.pod_resources import is_pod_level_resource, pod_limits, pod_requests
from podstatus.kube.scalars.quantity import Quantity

Amounts = dict[str, str]


def listed(amounts: Amounts) -> dict[str, Quantity]:
    return {name: Quantity(amount) for name, amount in amounts.items()}


def asks(cpu: str, *, sidecar: bool = False) -> Container:
    """Return a container with this cpu request and limit."""
    return Container(resources=both({"cpu": cpu}), restart_policy="Always" if sidecar else None)


def both(amounts: Amounts) -> ResourceRequirements:
    return ResourceRequirements(requests=listed(amounts), limits=listed(amounts))


@pytest.mark.parametrize(
    ("containers", "init", "expected"),
    [
        pytest.param([], [], {}, id="nothing"),
        pytest.param([asks("1"), asks("500m")], [], {"cpu": "1500m"}, id="containers add up"),
        pytest.param([asks("1")], [asks("3"), asks("2")], {"cpu": "3"}, id="the largest init"),
        pytest.param([asks("4")], [asks("3")], {"cpu": "4"}, id="init smaller than the rest"),
        pytest.param([asks("1")], [asks("2", sidecar=True)], {"cpu": "3"}, id="sidecars add up"),
        pytest.param([asks("-9")], [asks("2", sidecar=True)], {"cpu": "2"}, id="less than nothing"),
        pytest.param(
            [asks("1")],
            [asks("2", sidecar=True), asks("5")],
            {"cpu": "7"},
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            [asks("1")],
            [asks("5"), asks("2", sidecar=True)],
            {"cpu": "5"},
            id="and not beside those after it",
        ),
        pytest.param(
            [], [asks("1", sidecar=True), asks("2", sidecar=True)], {"cpu": "3"}, id="only sidecars"
        ),
    ],
)
def test_what_runs_at_one_time_adds_up(
    containers: list[Container], init: list[Container], expected: Amounts
) -> None:
    spec = PodSpec(containers=tuple(containers), init_containers=tuple(init))
    assert pod_requests(spec) == expected
    assert pod_limits(spec) == expected


def test_requests_and_limits_are_apart() -> None:
    resources = ResourceRequirements(
        requests=listed({"cpu": "1"}), limits=listed({"memory": "1Gi"})
    )
    spec = PodSpec(containers=(Container(resources=resources),))
    assert (pod_requests(spec), pod_limits(spec)) == ({"cpu": "1"}, {"memory": "1Gi"})


def test_what_the_pod_says_itself_overrides_its_containers_where_it_can() -> None:
    containers = (Container(resources=both({"cpu": "1", "memory": "1Gi", "gpu": "1"})),)
    own = both({"cpu": "3", "gpu": "9", "hugepages-2Mi": "4Mi"})
    spec = PodSpec(containers=containers, resources=own)
    expected = {"cpu": "3", "memory": "1Gi", "gpu": "1", "hugepages-2Mi": "4Mi"}
    assert pod_requests(spec) == expected
    assert pod_limits(spec) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [("cpu", True), ("memory", True), ("hugepages-1Gi", True), ("ephemeral-storage", False)],
)
def test_some_resources_are_the_pods_to_ask_for(name: str, *, expected: bool) -> None:
    assert is_pod_level_resource(name) is expected


def test_overhead_is_requested_and_counts_against_limits_there_are() -> None:
    resources = both({"cpu": "1", "memory": "0"})
    overhead = listed({"cpu": "250m", "memory": "64Mi", "gpu": "1"})
    spec = PodSpec(containers=(Container(resources=resources),), overhead=overhead)
    assert pod_requests(spec) == {"cpu": "1250m", "memory": "64Mi", "gpu": "1"}
    assert pod_limits(spec) == {"cpu": "1250m", "memory": "0"}


def test_overhead_is_added_once_however_often_one_looks() -> None:
    spec = PodSpec(resources=both({"memory": "1.5Gi"}), overhead=listed({"memory": "512Mi"}))
    assert pod_requests(spec) == pod_requests(spec) == {"memory": "2Gi"}


def test_a_single_amount_keeps_its_spelling() -> None:
    spec = PodSpec(containers=(Container(resources=both({"memory": "1e3"})),))
    assert pod_requests(spec) == {"memory": "1e3"}


def test_of_equal_amounts_the_containers_spelling_is_kept() -> None:
    spec = PodSpec(containers=(asks("1"),), init_containers=(asks("1000m"), asks("1000000u")))
    assert pod_requests(spec) == {"cpu": "1"}


@given(st.lists(st.tuples(st.integers(0, 5), st.booleans())), st.lists(st.integers(0, 5)))
def test_a_pod_needs_no_less_than_any_moment_of_its_life(
    init: list[tuple[int, bool]], regular: list[int]
) -> None:
    spec = PodSpec(
        containers=tuple(asks(str(n)) for n in regular),
        init_containers=tuple(asks(str(n), sidecar=sidecar) for n, sidecar in init),
    )
    sidecars = 0
    moments = [0]
    for cpu, sidecar in init:
        moments.append(sidecars + cpu)
        sidecars += cpu if sidecar else 0
    moments.append(sidecars + sum(regular))
    assert int(pod_requests(spec).get("cpu", "0")) == max(moments)
