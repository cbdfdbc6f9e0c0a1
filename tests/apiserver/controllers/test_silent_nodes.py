"""Silent nodes and their pods, in virtual time."""

import pytest

from podstatus.apiserver.controllers.decide.policy import NodeMonitorPolicy
from tests.apiserver.controllers.virtual_cluster import VirtualCluster, condition, tolerating
from tests.apiserver.targets import target

NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def cluster() -> VirtualCluster:
    return VirtualCluster()


async def test_a_node_is_unknown_after_its_grace_and_at_most_one_period(
    cluster: VirtualCluster,
) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        await cluster.clock.advance(3)
        cluster.renew("a")  # between two passes
        await cluster.clock.advance(40)
        assert cluster.ready("a") == "True"
        await cluster.clock.advance(5)
        assert cluster.ready("a") == "Unknown"


@pytest.mark.parametrize("sign", ["lease", "status"])
async def test_a_sign_of_life_of_either_kind_is_enough(cluster: VirtualCluster, sign: str) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        for _ in range(20):
            await cluster.clock.advance(30)
            cluster.renew("a") if sign == "lease" else cluster.report("a")
        assert cluster.ready("a") == "True"
        await cluster.clock.advance(46)
        assert cluster.ready("a") == "Unknown"


async def test_clocks_that_are_wrong_or_set_mean_nothing(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        for ahead in (3600, -3600, 0, -1, 7200):
            cluster.clock.step(-ahead)
            cluster.renew("a", clock_ahead=ahead)
            await cluster.clock.advance(35)
        assert cluster.ready("a") == "True"


async def test_a_lease_that_is_written_but_not_renewed_is_no_sign_of_life(
    cluster: VirtualCluster,
) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        cluster.renew("a")
        lease = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/a"
        for number in range(10):
            await cluster.clock.advance(5)
            cluster.patch(lease, leaseTransitions=number)
        assert cluster.ready("a") == "Unknown"


async def test_a_node_that_never_reported_has_longer(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        cluster.add_node("a", ready="")
        await cluster.clock.advance(60)
        assert cluster.ready("a") == ""
        await cluster.clock.advance(5)
        ready = condition(cluster.node("a"), "Ready")
        assert (ready["status"], ready["reason"]) == ("Unknown", "NodeStatusNeverUpdated")
        assert ready["lastHeartbeatTime"] == cluster.node("a")["metadata"]["creationTimestamp"]
        # It was not Ready before, so it did not become NotReady.
        assert cluster.events("a") == [
            "RegisteredNode: Node a event: Registered Node a in Controller (1)"
        ]


async def test_the_first_status_is_a_sign_of_life(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        cluster.add_node("a", ready="")
        cluster.add_node("anchor")
        await cluster.live(55, "anchor")
        cluster.report("a")
        await cluster.live(40, "anchor")
        assert cluster.ready("a") == "True"
        await cluster.live(5, "anchor")
        assert cluster.ready("a") == "Unknown"


async def test_when_the_first_node_is_ready_the_others_have_their_time_again(
    cluster: VirtualCluster,
) -> None:
    async with cluster.controlled():
        cluster.add_node("a", ready="False")
        await cluster.clock.advance(38)
        cluster.add_node("anchor")
        await cluster.live(40, "anchor")
        assert cluster.ready("a") == "False"
        await cluster.live(10, "anchor")
        assert cluster.ready("a") == "Unknown"


async def test_a_start_marks_the_pods_that_its_predecessor_did_not(
    cluster: VirtualCluster,
) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        cluster.add_pod("p", "a")
        await cluster.clock.advance(45)
    cluster.report_pod("p")
    async with cluster.controlled():
        await cluster.clock.advance(1)
        assert cluster.pod_ready("p") == "False"


async def test_pods_that_could_not_be_marked_are_marked_later(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        cluster.add_pod("p", "a")
        cluster.store.full_for = "pods"
        await cluster.clock.advance(50)
        assert (cluster.ready("a"), cluster.pod_ready("p")) == ("Unknown", "True")
        cluster.store.full_for = ""
        await cluster.clock.advance(5)
        assert cluster.pod_ready("p") == "False"


async def test_after_a_stall_of_the_server_nodes_have_the_time_to_report(
    cluster: VirtualCluster,
) -> None:
    async with cluster.controlled() as plane:
        plane.add_node("a")
        await plane.clock.advance(12)
        stalled = plane.clock.monotonic
        # As if the event loop had not run for ten minutes.
        plane.clock.monotonic = lambda: stalled() + 600 * 10**9  # type: ignore[method-assign]
        await plane.clock.advance(25)
        assert plane.ready("a") == "True"
        await plane.clock.advance(30)
        assert plane.ready("a") == "Unknown"


async def test_a_node_is_tainted_once_and_freed_when_it_returns(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        for name in ("a", "anchor"):
            cluster.add_node(name)
        cluster.add_pod("p", "a")
        await cluster.live(45, "anchor")
        assert cluster.taints("a") == cluster.taints("a", "NoSchedule") == "unreachable"
        added = cluster.node("a")["spec"]["taints"]
        assert all(taint["timeAdded"] for taint in added)
        version = cluster.node("a")["metadata"]["resourceVersion"]
        await cluster.live(60, "anchor")
        assert cluster.node("a")["metadata"]["resourceVersion"] == version
        cluster.report("a")
        await cluster.live(5, "anchor", "a")
        assert cluster.taints("a") == cluster.taints("a", "NoSchedule") == ""
        assert cluster.events("a") == [
            "NodeNotReady: Node a status is now: NodeNotReady (1)",
            "RegisteredNode: Node a event: Registered Node a in Controller (1)",
        ]


async def test_pods_become_not_ready_once_and_are_left_alone_then(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        for name in ("a", "anchor"):
            cluster.add_node(name)
        cluster.add_pod("p", "a")
        cluster.add_pod("other", "anchor")
        await cluster.live(45, "anchor")
        assert (cluster.pod_ready("p"), cluster.pod_ready("other")) == ("False", "True")
        managers = cluster.pod("p")["metadata"]["managedFields"]
        assert [entry["manager"] for entry in managers] == ["kube-controller-manager"]
        cluster.report_pod("p")  # a node that is heard, but does not renew its lease
        await cluster.live(60, "anchor")
        assert cluster.pod_ready("p") == "True"
        assert cluster.events("p") == ["NodeNotReady: Node is not ready (1)"]


async def test_nodes_are_tainted_one_by_one(cluster: VirtualCluster) -> None:
    names = ["a", "b", "anchor", "anchor-2"]
    async with cluster.controlled():
        for name in names:
            cluster.add_node(name)
        await cluster.live(45, "anchor", "anchor-2")
        assert [cluster.taints(name) for name in names] == ["unreachable", "", "", ""]
        await cluster.live(10, "anchor", "anchor-2")
        assert cluster.taints("b") == "unreachable"


async def test_in_a_small_zone_where_most_are_silent_nobody_is_tainted_further(
    cluster: VirtualCluster,
) -> None:
    names = ["a", "b", "c", "anchor"]
    async with cluster.controlled():
        for name in names:
            cluster.add_node(name)
        await cluster.live(120, "anchor")
        assert [cluster.ready(name) for name in names] == ["Unknown"] * 3 + ["True"]
        assert [cluster.taints(name) for name in names] == [""] * 4


async def test_an_excluded_node_does_not_count(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        cluster.add_node("anchor", exclude_disruption="")
        await cluster.live(60, "anchor")
        assert cluster.taints("a") == ""


async def test_a_single_node_that_dies_keeps_its_pods(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        cluster.add_pod("p", "a", tolerations=tolerating(10))
        await cluster.clock.advance(300)
        assert (cluster.ready("a"), cluster.taints("a")) == ("Unknown", "")
        assert cluster.pod_ready("p") == "False"
        assert not cluster.is_terminating("p")


async def test_when_the_last_node_falls_silent_evictions_are_cancelled(
    cluster: VirtualCluster,
) -> None:
    async with cluster.controlled():
        for name in ("a", "b"):
            cluster.add_node(name)
        cluster.add_pod("p", "a", tolerations=tolerating(60))
        await cluster.live(50, "b")
        assert cluster.taints("a") == "unreachable"
        await cluster.clock.advance(45)
        assert cluster.taints("a") == cluster.taints("b") == ""
        await cluster.clock.advance(100)
        assert not cluster.is_terminating("p")
        cluster.report("b")
        await cluster.live(20, "b")
        assert cluster.taints("a") == "unreachable"
        await cluster.live(65, "b")
        assert cluster.is_terminating("p")


async def test_a_removed_node_is_told_and_one_of_the_same_name_begins_anew(
    cluster: VirtualCluster,
) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        await cluster.clock.advance(38)
        cluster.delete(f"{NODES}/a")
        cluster.add_node("a")
        await cluster.clock.advance(20)
        assert cluster.ready("a") == "True"
        cluster.delete(f"{NODES}/a")
        await cluster.clock.advance(6)
        assert "RemovingNode: Node a event: Removing Node a from Controller (1)" in cluster.events(
            "a"
        )


async def test_a_restart_gives_nodes_and_pods_their_time_again(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        for name in ("a", "anchor"):
            cluster.add_node(name)
        cluster.add_pod("p", "a", tolerations=tolerating(60))
        await cluster.live(95, "anchor")
        assert cluster.taints("a") == "unreachable"
        (_, tainted) = cluster.node("a")["spec"]["taints"]
    await cluster.clock.advance(3600)
    async with cluster.controlled():
        await cluster.live(5, "anchor")
        (_, again) = cluster.node("a")["spec"]["taints"]
        assert again["timeAdded"] > tainted["timeAdded"]
        await cluster.live(35, "anchor")
        assert (cluster.ready("a"), cluster.taints("a")) == ("Unknown", "unreachable")
        assert cluster.ready("anchor") == "True"
        assert not cluster.is_terminating("p")
        await cluster.live(30, "anchor")
        assert cluster.is_terminating("p")


async def test_what_could_not_be_written_is_written_later(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        for name in ("a", "anchor"):
            cluster.add_node(name)
        cluster.add_pod("p", "a", tolerations=tolerating(10))
        await cluster.live(35, "anchor")
        cluster.store.is_full = True
        await cluster.clock.advance(15)
        cluster.store.is_full = False
        cluster.report("anchor")
        await cluster.live(10, "anchor")
        assert (cluster.ready("a"), cluster.pod_ready("p")) == ("Unknown", "False")
        assert cluster.taints("a") == "unreachable"
        cluster.store.is_full = True
        await cluster.clock.advance(10)
        assert not cluster.is_terminating("p")
        cluster.store.is_full = False
        cluster.renew("anchor")
        await cluster.clock.advance(2)
        assert cluster.is_terminating("p")


async def test_the_grace_is_a_setting(cluster: VirtualCluster) -> None:
    policy = NodeMonitorPolicy(node_monitor_grace_period=100, node_monitor_period=1)
    async with cluster.controlled(policy):
        cluster.add_node("a")
        await cluster.clock.advance(100)
        assert cluster.ready("a") == "True"
        await cluster.clock.advance(1.5)
        assert cluster.ready("a") == "Unknown"


async def test_a_pod_that_comes_to_a_tainted_node_is_evicted_in_its_time(
    cluster: VirtualCluster,
) -> None:
    async with cluster.controlled():
        for name in ("a", "anchor"):
            cluster.add_node(name)
        cluster.patch(f"{NODES}/a", taints=[{"key": "own", "effect": "NoExecute"}])
        cluster.add_pod("tolerant", "a", tolerations=tolerating(20))
        cluster.add_pod("intolerant", "a")
        await cluster.live(5, "a", "anchor")
        assert (cluster.is_terminating("intolerant"), cluster.is_terminating("tolerant")) == (
            True,
            False,
        )
        cluster.registry.remove(target(f"{PODS}/tolerant"))
        await cluster.live(30, "a", "anchor")
        assert cluster.events("tolerant") == [
            "TaintManagerEviction: Cancelling deletion of Pod default/tolerant (1)"
        ]


async def test_a_toleration_that_is_added_does_not_move_an_eviction(
    cluster: VirtualCluster,
) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        cluster.patch(f"{NODES}/a", taints=[{"key": "own", "effect": "NoExecute"}])
        cluster.add_pod("p", "a", tolerations=tolerating(20))
        cluster.add_pod("q", "a", tolerations=tolerating(20))
        await cluster.live(10, "a")
        for name, seconds in (("p", 60), ("q", None)):
            cluster.patch(f"{PODS}/{name}", tolerations=tolerating(seconds))
        await cluster.live(15, "a")
        assert (cluster.is_terminating("p"), cluster.is_terminating("q")) == (True, False)


async def test_pods_of_a_node_that_is_gone_are_failed_and_removed(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        cluster.add_pod("p", "a", tolerations=tolerating(None))
        cluster.delete(f"{NODES}/a")
        await cluster.clock.advance(55)
        assert cluster.pod_ready("p") == "True"
        await cluster.clock.advance(20)
        assert cluster.pod("p") == {}


async def test_a_node_that_is_registered_again_keeps_its_pods(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        cluster.add_node("a")
        cluster.add_pod("p", "a")
        for _ in range(3):
            cluster.delete(f"{NODES}/a")
            await cluster.clock.advance(30)
            cluster.add_node("a")
            await cluster.clock.advance(25)
        assert cluster.pod("p")


async def test_terminating_pods_that_no_node_stops_are_removed(cluster: VirtualCluster) -> None:
    async with cluster.controlled():
        cluster.add_node("a", ready="False")
        cluster.add_pod("p", "a", tolerations=[{"operator": "Exists"}])
        cluster.delete(f"{PODS}/p")
        await cluster.clock.advance(60)
        assert cluster.is_terminating("p")
        taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
        cluster.patch(f"{NODES}/a", taints=[taint])
        await cluster.clock.advance(20)
        assert cluster.pod("p") == {}


@pytest.mark.parametrize("restarted", [False, True])
async def test_no_pod_is_bound_to_a_node_whose_lease_has_expired(
    cluster: VirtualCluster, *, restarted: bool
) -> None:
    # With a grace that is longer than the lease, and at a start, when it has just begun.
    policy = NodeMonitorPolicy(node_monitor_grace_period=600)
    async with cluster.controlled(policy):
        cluster.add_node("a")
        cluster.renew("a")
        cluster.add_pod("early")
        await cluster.clock.advance(41)
        if not restarted:
            await wait_for_binding(cluster)
    if restarted:
        async with cluster.controlled(policy):
            await wait_for_binding(cluster)


async def wait_for_binding(cluster: VirtualCluster) -> None:
    assert cluster.pod("early")["spec"]["nodeName"] == "a"
    cluster.add_pod("late")
    await cluster.clock.advance(5)
    assert "nodeName" not in cluster.pod("late")["spec"]
    assert cluster.ready("a") == "True"
    cluster.renew("a")
    await cluster.clock.advance(1)
    assert cluster.pod("late")["spec"]["nodeName"] == "a"
