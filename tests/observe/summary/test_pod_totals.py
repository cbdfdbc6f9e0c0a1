"""The totals of the pods of each node, as pods are added, moved, terminated and removed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.quantity import Quantity
from podstatus.observe.summary.node import PodTotals, PodTotalsByNode

SMALL = {"cpu": Quantity("250m"), "memory": Quantity("64Mi")}
LARGE = {"cpu": Quantity("2"), "memory": Quantity("1Gi")}
WEB, DB = PodUID("web"), PodUID("db")


def test_pods_of_a_node_are_counted_and_added_up() -> None:
    totals = PodTotalsByNode()
    assert totals.get("a") == PodTotals()
    totals.put(WEB, "a", SMALL)
    totals.put(DB, "a", LARGE)
    assert totals.get("a") == PodTotals(pods=2, requested={"cpu": "2250m", "memory": "1088Mi"})


def test_what_has_ended_takes_nothing_any_more() -> None:
    totals = PodTotalsByNode()
    totals.put(WEB, "a", SMALL)
    assert totals.get("a").pods == 1
    totals.put(WEB, "a", None)
    assert totals.get("a") == PodTotals()


def test_a_pod_without_requests_is_one() -> None:
    totals = PodTotalsByNode()
    totals.put(WEB, "a", {})
    assert totals.get("a") == PodTotals(pods=1)


@pytest.mark.parametrize("amounts", [("1", "1e9999", "2"), ("1e9999", "1", "2")])
def test_one_that_asks_for_too_much_to_be_added_hides_no_other(amounts: tuple[str, ...]) -> None:
    totals = PodTotalsByNode()
    for number, cpu in enumerate(amounts):
        totals.put(PodUID(str(number)), "a", {"cpu": Quantity(cpu), "memory": Quantity("1Gi")})
    assert totals.get("a") == PodTotals(pods=3, requested={"cpu": "3", "memory": "3Gi"})


@given(
    st.lists(
        st.tuples(
            st.sampled_from([PodUID(it) for it in "xyz"]),
            st.sampled_from("ab"),
            st.sampled_from([None, {}, SMALL, LARGE]),
        )
    )
)
def test_sums_are_those_of_the_pods_that_are_there(
    changes: list[tuple[PodUID, str, dict[str, Quantity] | None]],
) -> None:
    totals, there = PodTotalsByNode(), dict[PodUID, tuple[str, dict[str, Quantity]]]()
    for uid, node, requests in changes:
        totals.put(uid, node, requests)
        there.pop(uid, None)
        if requests is not None:
            there[uid] = node, requests
        expected = PodTotalsByNode()
        for other, (where, amounts) in there.items():
            expected.put(other, where, amounts)
        for name in "ab":
            assert totals.get(name).pods == expected.get(name).pods
            assert totals.get(name).requested == expected.get(name).requested
