"""Events of the last ten minutes are counted, and expire."""

from podstatus.alerts.rules.windows import WINDOW_NANOS, PodWindows, WindowCounts
from podstatus.kube.objects.pod import PodUID
from podstatus.kube.scalars.time import Time
from podstatus.observe.summary.pod import ConditionSummary, ContainerSummary, PodSummary

SECOND = 1_000_000_000
AT = 1_700_000_000 * SECOND
WEB = PodUID("1")


def pod(*, ready: bool = True, since: int = 0, restarts: int = 0) -> PodSummary:
    status, changed = "True" if ready else "False", Time.from_unix_nanos(AT + since * SECOND)
    condition = ConditionSummary(type="Ready", status=status, since=changed)
    app = ContainerSummary(name="app", restarts=restarts)
    return PodSummary(uid=WEB, namespace="", name="", conditions=(condition,), containers=(app,))


def test_at_first_sight_nothing_has_happened() -> None:
    windows = PodWindows()
    windows.update(pod(restarts=7), AT)
    assert windows.counts(WEB, AT) == WindowCounts()
    assert windows.next_change(WEB) is None


def test_changes_of_ready_and_restarts_are_counted() -> None:
    windows = PodWindows()
    for number, like in enumerate([pod(), pod(ready=False), pod(restarts=1), pod(restarts=4)]):
        windows.update(like, AT + number * SECOND)
    assert windows.counts(WEB, AT + 4 * SECOND) == WindowCounts(ready_changes=2, restarts=4)


def test_a_pod_that_is_as_before_but_newly_so_has_changed_twice() -> None:
    windows = PodWindows()
    windows.update(pod(since=0), AT)
    windows.update(pod(since=9), AT + 10 * SECOND)
    assert windows.counts(WEB, AT + 10 * SECOND).ready_changes == 2


def test_a_pod_without_the_condition_is_not_ready() -> None:
    windows = PodWindows()
    windows.update(PodSummary(uid=WEB, namespace="", name=""), AT)
    windows.update(pod(ready=False), AT)
    assert windows.counts(WEB, AT).ready_changes == 0
    windows.update(pod(), AT)
    assert windows.counts(WEB, AT).ready_changes == 1


def test_what_is_older_than_ten_minutes_is_forgotten_when_it_was_said_to_be() -> None:
    windows = PodWindows()
    windows.foreign_write(WEB, AT)
    windows.foreign_write(WEB, AT + 60 * SECOND)
    moves = windows.next_change(WEB)
    assert moves == AT + WINDOW_NANOS
    assert windows.counts(WEB, moves - 1).foreign_writes == 2
    assert windows.counts(WEB, moves).foreign_writes == 1
    assert windows.next_change(WEB) == AT + 60 * SECOND + WINDOW_NANOS
    assert windows.counts(WEB, AT + 60 * SECOND + WINDOW_NANOS) == WindowCounts()
    assert windows.next_change(WEB) is None


def test_a_wild_pod_takes_little_room() -> None:
    windows = PodWindows()
    for number in range(20_000):
        windows.foreign_write(WEB, AT + number * SECOND // 10)
    assert len(windows) <= WINDOW_NANOS // (10 * SECOND) + 1
    assert 5_800 <= windows.counts(WEB, AT + 2_000 * SECOND).foreign_writes <= 6_000


def test_a_pod_that_goes_is_forgotten() -> None:
    windows = PodWindows()
    windows.update(pod(), AT)
    windows.update(pod(ready=False), AT)
    windows.forget(WEB)
    assert windows.counts(WEB, AT) == WindowCounts()
    assert len(windows) == 0
