from http import HTTPStatus

import pytest

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.container_state import parse_container_state
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary
from podstatus.web.errors import HttpError
from podstatus.web.query_parameters import read_query
from podstatus.web.v1.filters import FILTERS, check_parameters, pod_filter

NOW = Time.parse("2026-11-15T12:00:00Z")
POD = PodSummary(
    uid=PodUID("1"),
    namespace="default",
    name="web-0",
    node="one",
    labels={"app": "web", "tier": "2"},
    phase="Running",
    conditions=(
        ConditionSummary(type="PodScheduled", status="True"),
        ConditionSummary(type="Ready", status="False"),
    ),
    containers=(
        ContainerSummary(
            name="app", state=parse_container_state("waiting CrashLoopBackOff"), restarts=3
        ),
    ),
)


@pytest.mark.parametrize(
    ("query", "selected"),
    [
        ("", True),
        ("namespace=", True),
        ("namespace=default", True),
        ("namespace=defaul", False),
        ("node=one", True),
        ("node=two", False),
        ("labelSelector=app%3Dweb", True),
        ("labelSelector=app=web", True),
        ("labelSelector=app=web,tier+in+(1,3)", False),
        ("labelSelector=!app", False),
        ("phase=Running", True),
        ("phase=running", True),
        ("phase=Pending,Running", True),
        ("phase=Pending&phase=Running", True),
        ("phase=Pending", False),
        ("condition=PodScheduled", True),
        ("condition=Ready", False),
        ("condition=Ready:False", True),
        ("condition=Ready:false,PodScheduled:True", True),
        ("condition=Ready:False,PodScheduled:False", False),
        ("condition=Ready:Unknown", False),
        ("condition=Initialized:False", False),
        ("health=crashing", True),
        ("health=stuck,crashing", True),
        ("health=healthy", False),
        ("namespace=default&phase=Running&health=crashing&labelSelector=tier>1", True),
        ("namespace=default&phase=Running&health=crashing&labelSelector=tier>2", False),
    ],
)
def test_a_query_selects_pods(query: str, selected: bool) -> None:
    assert pod_filter(read_query(query)).matches(POD, NOW) is selected


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("namespace=a&namespace=b", "namespace is given 2 times; specify it once"),
        ("labelSelector=a+b", "labelSelector=a b: unable to parse requirement: found 'b'"),
        ("phase=Runing", "phase: unknown value 'Runing'; one of Pending, Running,"),
        ("condition=Ready:no", "condition=Ready: unknown value 'no'; one of True, False, Unknown"),
        ("condition=:True", "has no type; write it as Ready:False"),
        ("health=bad", "health: unknown value 'bad'; one of healthy, starting"),
    ],
)
def test_an_invalid_filter_is_rejected_with_a_reason(query: str, message: str) -> None:
    with pytest.raises(HttpError) as error:
        pod_filter(read_query(query))
    assert error.value.code == HTTPStatus.BAD_REQUEST
    assert message in error.value.text


def test_health_depends_on_the_time() -> None:
    stuck = pod_filter(read_query("health=stuck"))
    pod = PodSummary(uid=PodUID("2"), namespace="a", name="b", phase="Pending", created=NOW)
    assert not stuck.matches(pod, NOW)
    assert stuck.matches(pod, Time.parse("2026-11-15T12:10:00Z"))


def test_unknown_parameters_are_rejected() -> None:
    check_parameters(read_query("namespace=a&phase="), FILTERS)
    with pytest.raises(
        HttpError, match="unknown parameter labelselector; known parameters: namespace, label"
    ):
        check_parameters(read_query("labelselector=app"), FILTERS)
