"""The transitions between two states of a node."""

from hypothesis import given
from hypothesis import strategies as st

from podstatus.observe.ports import NodeSummary, TaintSummary
from podstatus.observe.transitions.compare_statuses import CONDITION, TAINT, Transition
from podstatus.observe.transitions.node_transitions import (
    NodeState,
    node_state,
    node_transitions,
)

VALUES = st.dictionaries(
    st.tuples(st.sampled_from([CONDITION, TAINT]), st.sampled_from(["Ready", "a", "b"])),
    st.sampled_from(["True", "False", "Unknown", "set"]),
)


def state(values: dict[tuple[str, str], str]) -> NodeState:
    return NodeState(name="n", values=values)


@given(VALUES, VALUES)
def test_they_lead_from_one_state_to_the_other(
    before: dict[tuple[str, str], str], after: dict[tuple[str, str], str]
) -> None:
    values = dict(before)
    for change in node_transitions(before, state(after)):
        key = change.kind, change.subject
        assert values.get(key, "") == change.before != change.after
        values[key] = change.after
    assert {key: value for key, value in values.items() if value} == after


def test_ready_comes_first_with_its_reason_and_conditions_before_taints() -> None:
    node = NodeSummary(
        name="n",
        reason="NodeStatusUnknown",
        message="no heartbeat",
        conditions={"DiskPressure": "Unknown", "Ready": "Unknown"},
        taints=(TaintSummary("a", "b", "NoExecute"),),
    )
    assert node_transitions({}, node_state(node)) == [
        Transition(
            kind=CONDITION,
            subject="Ready",
            after="Unknown",
            reason="NodeStatusUnknown",
            message="no heartbeat",
        ),
        Transition(kind=CONDITION, subject="DiskPressure", after="Unknown"),
        Transition(kind=TAINT, subject="a=b:NoExecute", after="set"),
    ]
