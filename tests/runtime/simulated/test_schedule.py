import pickle

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.simulated.model.schedule import PodSchedule

A, B = PodUID("uid-a"), PodUID("uid-b")


def test_moments_that_were_put_off_do_not_come() -> None:
    moments = PodSchedule()
    moments.reschedule(A, 10)
    moments.reschedule(B, 20)
    moments.reschedule(A, 30)
    assert moments.next_due() == 20
    assert moments.pop_due(25) == [B]
    moments.reschedule(A, None)
    assert moments.next_due() is None
    assert moments.pop_due(100) == []


def test_moments_that_are_put_off_often_take_no_room() -> None:
    moments = PodSchedule()
    for at in range(10_000, 0, -1):
        moments.reschedule(A, at)
        moments.reschedule(A, at + 20_000)
    assert len(pickle.dumps(moments)) < 10_000
    assert moments.pop_due(20_001) == [A]
