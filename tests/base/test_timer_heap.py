"""The timer heap."""

import pickle

from hypothesis import given
from hypothesis import strategies as st

from podstatus.base.timer_heap import TimerHeap

KEYS = st.sampled_from("abcd")
STEPS = st.one_of(
    st.tuples(st.just("set"), KEYS, st.integers(0, 20)),
    st.tuples(st.just("cancel"), KEYS, st.just(0)),
    st.tuples(st.just("pop"), st.just(""), st.integers(0, 20)),
)


@given(st.lists(STEPS, max_size=200))
def test_what_waits_comes_when_its_time_has(steps: list[tuple[str, str, int]]) -> None:
    deadlines, model = TimerHeap[str](), dict[str, int]()
    for what, key, at in steps:
        if what == "set":
            deadlines.set(key, at)
            model[key] = at
        elif what == "cancel":
            deadlines.cancel(key)
            model.pop(key, None)
        else:
            popped = deadlines.pop_due(at)
            assert [model[it] for it in popped] == sorted(model[it] for it in popped)
            assert set(popped) == {it for it, time in model.items() if time <= at}
            for it in popped:
                del model[it]
        assert deadlines.next_due() == min(model.values(), default=None)
        assert set(deadlines.pending_keys()) == set(model)


def test_deadlines_that_are_replaced_often_take_no_room() -> None:
    deadlines = TimerHeap[int]()
    for number in range(10_000, 0, -1):
        deadlines.set(number % 10, number)
        deadlines.set(number % 10, number + 20_000)
    assert len(deadlines) == 10
    assert len(pickle.dumps(deadlines)) < 10_000


def test_a_key_without_a_deadline_is_not_due() -> None:
    deadlines = TimerHeap[str]()
    deadlines.set("a", 1)
    deadlines.set("a", None)
    assert deadlines.next_due() is None
    assert deadlines.pop_due(100) == []
