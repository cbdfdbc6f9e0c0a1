"""For any sequence of deliveries, the changes of the mux are consistent."""

from random import Random

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from podstatus.kube.objects.pod import Pod, PodUID
from podstatus.kube.objects.pod_status import PodStatus
from podstatus.sources.decide.pod_changes import PodAdded, PodConfigChange, PodRemoved
from podstatus.sources.mux import Mux, RejectedPod
from podstatus.testing.builders import make_pod

SOURCES = ("api", "file", "http")


def build(uid: str, name: str, label: str, phase: str, deleted: bool) -> Pod:
    deleted_at = "2026-01-01T00:00:00Z" if deleted else None
    pod = make_pod(name, uid=uid, status=PodStatus(phase=phase), deleted_at=deleted_at)
    return structs.replace(pod, metadata=structs.replace(pod.metadata, labels={"v": label}))


pods = st.builds(
    build,
    st.sampled_from("1234"),
    st.sampled_from("abc"),
    st.sampled_from("xy"),
    st.sampled_from(["Pending", "Running"]),
    st.booleans(),
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("deliver"), st.sampled_from(SOURCES), st.lists(pods, max_size=5)),
        st.tuples(st.just("update"), st.sampled_from(SOURCES), st.tuples(pods)),
        st.tuples(st.just("remove"), st.sampled_from(SOURCES), st.tuples(pods)),
    ),
    max_size=12,
)


class Listener:
    """Applies the changes, and checks their consistency."""

    def __init__(self) -> None:
        self.known: dict[PodUID, Pod] = {}
        self.refused: list[tuple[str, PodUID]] = []

    def hear(self, change: PodConfigChange) -> None:
        match change:
            case PodAdded(added):
                assert added
                for pod in added:
                    assert pod.uid not in self.known, "added twice"
                    self.known[pod.uid] = pod
            case PodRemoved(pod):
                assert self.known.pop(pod.uid) == pod, "removed in another version than reported"
            case _:
                assert self.known[change.pod.uid] != change.pod, "reported without a change"
                assert self.known[change.pod.uid].full_name == change.pod.full_name
                self.known[change.pod.uid] = change.pod

    def hear_refused(self, refused: RejectedPod) -> None:
        self.refused.append((refused.source, refused.pod.uid))


def apply(wanted: dict[PodUID, Pod], what: str, given: list[Pod] | tuple[Pod]) -> None:
    if what == "deliver":
        wanted.clear()
        for pod in given:
            wanted.setdefault(pod.uid, pod)
    for pod in given:
        if what == "update":
            wanted[pod.uid] = pod
        elif what == "remove":
            wanted.pop(pod.uid, None)


@given(steps)
def test_the_changes_add_up_to_the_desired_pods(
    story: list[tuple[str, str, list[Pod] | tuple[Pod]]],
) -> None:
    listener = Listener()
    mux = Mux(SOURCES, listener.hear, on_rejected=listener.hear_refused)
    wanted: dict[str, dict[PodUID, Pod]] = {source: {} for source in SOURCES}
    for what, source, given_pods in story:
        apply(wanted[source], what, given_pods)
        if what == "deliver":
            mux.deliver(source, given_pods)
        elif what == "update":
            mux.update(source, given_pods[0])
        else:
            mux.remove(source, given_pods[0])
        check(mux, listener, wanted)


def check(mux: Mux, listener: Listener, wanted: dict[str, dict[PodUID, Pod]]) -> None:
    known = listener.known
    assert {pod.uid: pod for pod in mux.pods()} == known
    for pod in known.values():
        assert any(of.get(pod.uid) == pod for of in wanted.values()), "no source has this version"
    for source, of in wanted.items():
        for uid, pod in of.items():
            if known.get(uid) == pod:
                continue
            named = [other for other in of.values() if other.full_name == pod.full_name]
            blocked_by_name = any(known.get(other.uid) == other for other in named)
            assert uid in known or blocked_by_name, "it could be taken"
            assert (source, uid) in listener.refused


@given(steps, st.randoms(use_true_random=False))
def test_a_last_delivery_of_all_sources_settles_everything(
    story: list[tuple[str, str, list[Pod] | tuple[Pod]]], random: Random
) -> None:
    listener = Listener()
    mux = Mux(SOURCES, listener.hear, on_rejected=listener.hear_refused)
    for what, source, given_pods in story:
        if what == "deliver":
            mux.deliver(source, given_pods)
        elif what == "update":
            mux.update(source, given_pods[0])
    last = [make_pod(f"{source}-{n}") for source in SOURCES for n in range(2)]
    order = list(SOURCES)
    random.shuffle(order)
    for source in order:
        mux.deliver(source, [pod for pod in last if pod.name.startswith(source)])
    assert listener.known == {pod.uid: pod for pod in last}
    assert mux.all_sources_ready
