from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.simulated.model.schedule import Moments

A, B = PodUID("uid-a"), PodUID("uid-b")


def test_moments_that_were_put_off_do_not_come() -> None:
    moments = Moments()
    moments.put(A, 10)
    moments.put(B, 20)
    moments.put(A, 30)
    assert moments.next() == 20
    assert moments.take_due(25) == [B]
    moments.put(A, None)
    assert moments.next() is None
    assert moments.take_due(100) == []


def test_moments_that_are_put_off_often_take_no_room() -> None:
    moments = Moments()
    for at in range(10_000, 0, -1):
        moments.put(A, at)
        moments.put(A, at + 20_000)
    assert len(moments._heap) < 100
    assert moments.take_due(20_001) == [A]
