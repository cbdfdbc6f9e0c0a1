"""The notifications between the parts of an agent."""

from podstatus.agent.compose.dependencies import Signal, Signals
from podstatus.kube.objects.pod import PodUID


def test_a_signal_reaches_all_receivers_in_order() -> None:
    received: list[str] = []
    signal: Signal[[PodUID]] = Signal()
    signal.connect(lambda uid: received.append(f"first {uid}"))
    signal.connect(lambda uid: received.append(f"second {uid}"))
    signal(PodUID("a"))
    assert received == ["first a", "second a"]


def test_a_signal_without_receivers_does_nothing_and_signals_are_not_shared() -> None:
    received: list[str] = []
    one, other = Signals(), Signals()
    one.mirror_changed.connect(lambda: received.append("mirror"))
    other.mirror_changed()
    one.node_changed()
    assert received == []
    one.mirror_changed()
    assert received == ["mirror"]
