"""Tolerations of a pod for the taints of a node."""

import pytest

from podstatus.kube.objects.node import Node, NodeSpec, Taint
from podstatus.kube.objects.pod_spec import PodSpec, Toleration
from podstatus.kube.taints import tolerates_no_execute

TAINT = Taint(key="team", value="red", effect="NoExecute")


@pytest.mark.parametrize(
    ("toleration", "expected"),
    [
        (Toleration(key="team", value="red"), True),
        (Toleration(key="team", operator="Equal", value="red"), True),
        (Toleration(key="team", value="blue"), False),
        (Toleration(key="team"), False),
        (Toleration(key="team", operator="Exists"), True),
        (Toleration(key="other", operator="Exists"), False),
        (Toleration(operator="Exists"), True),
        (Toleration(key="team", operator="Exists", effect="NoExecute"), True),
        (Toleration(key="team", operator="Exists", effect="NoSchedule"), False),
        (Toleration(key="team", operator="Gt", value="red"), False),
        (Toleration(key="team", operator="Exists", toleration_seconds=5), True),
    ],
)
def test_a_toleration_and_a_taint(toleration: Toleration, expected: bool) -> None:
    node = Node(spec=NodeSpec(taints=(TAINT,)))
    assert tolerates_no_execute(PodSpec(tolerations=(toleration,)), node) is expected


def test_every_such_taint_has_to_be_tolerated() -> None:
    node = Node(spec=NodeSpec(taints=(TAINT, Taint(key="x", effect="NoExecute"))))
    some = (Toleration(key="team", operator="Exists"),)
    assert not tolerates_no_execute(PodSpec(tolerations=some), node)
    assert tolerates_no_execute(
        PodSpec(tolerations=(*some, Toleration(key="x", operator="Exists"))), node
    )


def test_taints_of_other_effects_do_not_matter() -> None:
    taints = (Taint(key="x", effect="NoSchedule"), Taint(key="y", effect="PreferNoSchedule"))
    assert tolerates_no_execute(PodSpec(), Node(spec=NodeSpec(taints=taints)))
    assert tolerates_no_execute(PodSpec(), Node())
