"""Selection of the probes to run."""

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.probes.decide.targets import find_started_probes, find_targets
from podstatus.probes.decide.thresholds import ProbeType
from podstatus.testing.builders import make_pod
from tests.support.probed_pods import a_probe, probed_pod, shown

POD = probed_pod(startup=a_probe(), readiness=a_probe(), liveness=a_probe())
DELETED = structs.replace(
    POD, metadata=make_pod("p", uid="p", deleted_at="2100-01-01T00:00:00Z").metadata
)


def kinds(pod: Pod, status: PodStatus, *, ending: bool = False) -> set[str]:
    return {key.kind.value for key in find_targets(pod, status, terminating=ending)}


@pytest.mark.parametrize(
    ("pod", "status", "ending", "expected"),
    [
        (POD, shown(POD), False, {"readiness", "liveness"}),
        (POD, shown(POD, started=False), False, {"startup"}),
        (POD, shown(POD, runs=False), False, set()),
        (POD, shown(POD, phase="Failed"), False, set()),
        (POD, shown(POD), True, {"readiness"}),
        (POD, shown(POD, started=False), True, set()),
        (DELETED, shown(POD), False, {"readiness"}),
        (DELETED, shown(POD, started=False), False, set()),
        (make_pod(), shown(make_pod()), False, set()),
        (POD, PodStatus(), False, set()),
    ],
)
def test_probes_that_are_run(pod: Pod, status: PodStatus, ending: bool, expected: set[str]) -> None:
    assert kinds(pod, status, ending=ending) == expected


def test_sidecars_are_probed_and_other_init_containers_are_not() -> None:
    pod = probed_pod(sidecars=("side",), readiness=a_probe())
    assert {key.container for key in find_targets(pod, shown(pod), terminating=False)} == {
        "app",
        "side",
    }
    first = structs.replace((pod.spec.init_containers or ())[0], restart_policy=None)
    spec = structs.replace(pod.spec, init_containers=(first,))
    plain = structs.replace(pod, spec=spec)
    assert {key.container for key in find_targets(plain, shown(plain), terminating=False)} == {
        "app"
    }


def test_each_attempt_is_another_target_and_knows_where_it_is() -> None:
    before = find_targets(POD, shown(POD), terminating=False)
    after = find_targets(POD, shown(POD, id="c2"), terminating=False)
    assert before.keys().isdisjoint(after)
    assert {target.pod_ip for target in after.values()} == {"10.0.0.1"}
    assert {target.container.name for target in after.values()} == {"app"}


def test_who_has_started_is_found() -> None:
    [key] = find_started_probes(POD, shown(POD))
    assert (key.kind, key.container_id) == (ProbeType.STARTUP, "c1-app")
    assert find_started_probes(POD, shown(POD, started=False)) == []
    assert find_started_probes(POD, shown(POD, runs=False)) == []
    without = probed_pod(readiness=a_probe())
    assert find_started_probes(without, shown(without)) == []
