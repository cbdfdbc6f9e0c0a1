"""However the API server fails, both policies come to rest with the same on it.

Scripts of what happens on the node, what others write and what goes wrong are played to a node
with upstream's policy and to one with ours. When all faults are over and five minutes have
passed, the pods are compared as JSON, without times, resource versions and the order of
conditions.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.kube.scalars.quantity import QuantityError
from podstatus.status.policy import ParallelSyncOptions, SyncPolicy
from podstatus.testing.builders import (
    ended,
    make_pod,
    make_static_pod,
    make_status,
    running,
    waiting,
)
from tests.support.data.strategies import OURS, statuses
from tests.support.status_fleet import Fleet

PODS = {"job": "default", "web": "default", "static": "kube-system"}
STATUSES = [
    make_status("Pending", waiting("app"), Ready="False", PodScheduled="True"),
    make_status("Running", running("app", ready=False), Ready="False", ContainersReady="False"),
    make_status("Running", running("app"), Ready="True", ContainersReady="True"),
    make_status("Succeeded", ended("app"), Ready="False"),
    make_status("Failed", ended("app", 1), Ready="False", DisruptionTarget="True"),
    make_status("Running", ended("app", 3), Ready="False"),
]
CODES = [404, 409, 422, 429, 500, 403]

Step = Callable[[Fleet], Coroutine[Any, Any, Any]]

names = st.sampled_from(sorted(PODS))


class Script:
    """All kinds of steps, each as a strategy."""

    @staticmethod
    def report() -> st.SearchStrategy[Step]:
        any_status = st.one_of(st.sampled_from(STATUSES), statuses(types=OURS))

        def step(name: str, status: PodStatus, message: str) -> Step:
            async def play(fleet: Fleet) -> object:
                new_status = structs.replace(status, message=message) if message else status
                try:
                    return fleet.manager.set_pod_status(node_pod(fleet, name), new_status)[1]
                except (ValueError, QuantityError) as error:
                    return str(error)

            return play

        return st.builds(step, names, any_status, st.sampled_from(["", "a", "b"]))

    @staticmethod
    def probe() -> st.SearchStrategy[Step]:
        def step(name: str, ready: bool) -> Step:
            async def play(fleet: Fleet) -> None:
                pod = node_pod(fleet, name)
                fleet.manager.set_container_readiness(pod.uid, "fake://app", ready=ready)

            return play

        return st.builds(step, names, st.booleans())

    @staticmethod
    def end() -> st.SearchStrategy[Step]:
        def step(name: str) -> Step:
            async def play(fleet: Fleet) -> None:
                fleet.manager.terminate_pod(node_pod(fleet, name))

            return play

        return st.builds(step, names)

    @staticmethod
    def hold() -> st.SearchStrategy[Step]:
        def step(name: str, may_run: bool) -> Step:
            async def play(fleet: Fleet) -> None:
                for uid in (f"uid-{name}", f"mirror-{name}"):
                    fleet.safety.table[uid] = may_run

            return play

        return st.builds(step, names, st.booleans())

    @staticmethod
    def fault() -> st.SearchStrategy[Step]:
        def step(name: str, verb: str, code: int, times: int) -> Step:
            async def play(fleet: Fleet) -> None:
                fleet.api.fail(verb, PODS[name], name, code=code, times=times)

            return play

        verbs = st.sampled_from(["get", "patch", "delete"])
        return st.builds(step, names, verbs, st.sampled_from(CODES), st.integers(1, 12))

    @staticmethod
    def outage() -> st.SearchStrategy[Step]:
        def step(times: int) -> Step:
            async def play(fleet: Fleet) -> None:
                for name, namespace in PODS.items():
                    for verb in ("get", "patch", "delete"):
                        fleet.api.fail(verb, namespace, name, code=503, times=times)

            return play

        return st.builds(step, st.integers(1, 20))

    @staticmethod
    def time() -> st.SearchStrategy[Step]:
        def step(seconds: float) -> Step:
            async def play(fleet: Fleet) -> None:
                await fleet.clock.advance(seconds)

            return play

        return st.builds(step, st.sampled_from([0, 0, 0.05, 0.3, 1, 5, 11]))

    @staticmethod
    def others() -> st.SearchStrategy[Step]:
        """Actions of other clients while the sync is idle."""
        gate = {"type": "example.com/lb", "status": "True"}
        ours = {"type": "Ready", "status": "Unknown"}
        patches = st.sampled_from(
            [
                {"conditions": [gate]},
                {"conditions": [ours]},
                {"phase": "Unknown", "message": "theirs"},
                {"containerStatuses": []},
                {"resourceClaimStatuses": [{"name": "gpu"}]},
            ]
        )

        def write(name: str, patch: dict[str, Any]) -> Step:
            async def play(fleet: Fleet) -> None:
                await rest(fleet)
                fleet.api.patch(PODS[name], name, {"status": patch})

            return play

        def delete(name: str) -> Step:
            async def play(fleet: Fleet) -> None:
                await rest(fleet)
                if fleet.api.pod(PODS[name], name) is not None:
                    fleet.api.request_deletion(PODS[name], name, at="2100-01-01T00:00:00Z")

            return play

        def replace(name: str) -> Step:
            async def play(fleet: Fleet) -> None:
                await rest(fleet)
                fleet.api.remove(PODS[name], name)
                if name != "static":
                    fleet.api.put(make_pod(name, uid="another"))

            return play

        return st.one_of(
            st.builds(write, names, patches), st.builds(delete, names), st.builds(replace, names)
        )


def scripts() -> st.SearchStrategy[list[Step]]:
    steps = st.one_of(
        Script.report(),
        Script.report(),
        Script.probe(),
        Script.end(),
        Script.hold(),
        Script.fault(),
        Script.fault(),
        Script.outage(),
        Script.time(),
        Script.time(),
        Script.others(),
    )
    return st.lists(steps, min_size=1, max_size=25)


def node_pod(fleet: Fleet, name: str) -> Pod:
    """Return the node's copy of the pod: from the watch, or the initial one."""
    began = next(pod for pod in fleet.pods if pod.name == name)
    return fleet.directory.pod_by_uid(began.uid) or began


async def rest(fleet: Fleet) -> None:
    """End all faults, and advance the clock past every back-off."""
    fleet.api.stop_failing()
    await fleet.clock.advance(330)


async def played(script: list[Step], policy: SyncPolicy) -> tuple[list[Any], Any]:
    """Return the node's result of each step, and the API server's final state."""
    fleet = Fleet([], policy=policy, rounds=5)
    static, mirror = make_static_pod(), make_static_pod(mirror=True)
    fleet.pods = [make_pod("job", restart_policy="Never"), make_pod("web"), static]
    fleet.directory.update_pod(static)
    for pod in (*fleet.pods[:2], mirror):
        fleet.api.put(pod)
    async with fleet.running():
        results = [await step(fleet) for step in script]
        fleet.safety.table.clear()
        await rest(fleet)
        at_rest = [comparable(pod) for pod in fleet.api.pods()]
    return results, sorted(at_rest, key=str)


def comparable(pod: Pod) -> Any:
    """Return the pod as JSON, without times, versions and the order of conditions."""
    document = without_times(to_document(pod))
    document["metadata"].pop("resourceVersion", None)
    document["status"].get("conditions", []).sort(key=lambda condition: condition["type"])
    return document


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: without_times(held)
            for key, held in value.items()
            if not key.endswith(("Time", "At"))
        }
    return [without_times(held) for held in value] if isinstance(value, list) else value


@settings(max_examples=40, deadline=None)
@given(scripts())
def test_both_policies_come_to_rest_in_the_same_state(script: list[Step]) -> None:
    upstream = asyncio.run(played(script, SyncPolicy.upstream()))
    ours = asyncio.run(played(script, SyncPolicy()))
    assert ours == upstream


@pytest.mark.parametrize(
    "fields",
    [{"in_flight": 1}, {"read_first": True}, {"prioritize": False}, {"circuit_after": 0}],
    ids=str,
)
@settings(max_examples=6, deadline=None)
@given(script=scripts())
def test_no_field_of_the_policy_changes_what_is_there_at_rest(
    fields: dict[str, Any], script: list[Step]
) -> None:
    upstream = asyncio.run(played(script, SyncPolicy.upstream()))
    other = asyncio.run(played(script, SyncPolicy(parallel=ParallelSyncOptions(**fields))))
    assert other == upstream


def test_what_is_compared_leaves_times_and_order_out_and_nothing_else() -> None:
    conditions = [PodCondition(type=kind, status="True") for kind in ("Ready", "Initialized")]
    first = make_pod(status=PodStatus(phase="Running", conditions=tuple(conditions)))
    second = make_pod(status=PodStatus(phase="Running", conditions=tuple(reversed(conditions))))
    assert comparable(first) == comparable(second)
    assert comparable(first) != comparable(make_pod(status=PodStatus(phase="Failed")))
