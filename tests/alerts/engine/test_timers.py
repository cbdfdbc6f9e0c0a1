"""The timer heap."""

from hypothesis import given
from hypothesis import strategies as st

from podstatus.alerts.engine.timers import TimerHeap

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


def test_what_is_set_again_takes_no_room() -> None:
    deadlines = TimerHeap[str]()
    for _ in range(50):
        deadlines.set("a", 1)
    assert deadlines.heap_size == 1


def test_what_was_cancelled_is_tidied_away() -> None:
    deadlines = TimerHeap[int]()
    for number in range(10_000):
        deadlines.set(number % 10, number)
    assert len(deadlines) == 10
    assert deadlines.heap_size <= 2 * 10 + 64
