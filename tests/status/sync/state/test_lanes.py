from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.pod import PodUID
from podstatus.status.sync.state.workqueue import Priority, PriorityQueue

A, B, C = PodUID("a"), PodUID("b"), PodUID("c")


def popped(lanes: PriorityQueue) -> list[str]:
    order = []
    while (uid := lanes.pop()) is not None:
        order.append(str(uid))
    return order


def test_the_urgent_overtake_and_reconciles_come_last() -> None:
    lanes = PriorityQueue()
    lanes.put(A, Priority.RECONCILE, 0)
    lanes.put(B, Priority.ORDINARY, 1)
    lanes.put(C, Priority.URGENT, 2)
    assert popped(lanes) == ["c", "b", "a"]


def test_within_a_lane_who_came_first_goes_first() -> None:
    lanes = PriorityQueue()
    for uid in (B, A, C):
        lanes.put(uid, Priority.ORDINARY, 7)
    assert popped(lanes) == ["b", "a", "c"]


def test_who_waited_for_longer_than_its_patience_is_overtaken_no_more() -> None:
    lanes = PriorityQueue()
    lanes.put(A, Priority.ORDINARY, 0)
    lanes.put(B, Priority.URGENT, Priority.ORDINARY.value - 1)
    lanes.put(C, Priority.URGENT, Priority.ORDINARY.value + 1)
    assert popped(lanes) == ["b", "a", "c"]


def test_a_pod_that_waits_can_move_ahead_but_not_back() -> None:
    lanes = PriorityQueue()
    lanes.put(A, Priority.RECONCILE, 0)
    lanes.put(B, Priority.ORDINARY, 0)
    lanes.put(A, Priority.URGENT, 0)
    lanes.put(A, Priority.RECONCILE, 0)
    assert len(lanes) == 2
    assert popped(lanes) == ["a", "b"]


def test_a_discarded_pod_goes_only_if_it_is_put_again() -> None:
    lanes = PriorityQueue()
    lanes.put(A, Priority.URGENT, 0)
    lanes.discard(A)
    assert (len(lanes), lanes.pop()) == (0, None)
    lanes.put(A, Priority.ORDINARY, 0)
    assert popped(lanes) == ["a"]


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.sampled_from(Priority), st.integers(0, 99)),
        max_size=20,
    )
)
def test_each_pod_goes_once_in_the_order_of_who_can_wait_least(
    puts: list[tuple[str, Priority, int]],
) -> None:
    lanes, due = PriorityQueue(), dict[str, float]()
    for name, lane, now in puts:
        lanes.put(PodUID(name), lane, now)
        due[name] = min(due.get(name, float("inf")), now + lane.value)
    order = popped(lanes)
    assert sorted(order) == sorted(due)
    assert [due[name] for name in order] == sorted(due.values())
