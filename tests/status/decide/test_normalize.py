import pytest
from msgspec import structs

from podstatus.kube.encoding.codec import from_document, to_document
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.containers import Container, EphemeralContainer
from podstatus.kube.objects.pod import Pod
from podstatus.kube.objects.pod_status import (
    ContainerState,
    ContainerStatus,
    PodCondition,
    PodStatus,
)
from podstatus.kube.scalars.time import UNSET_TIME, Time
from podstatus.status.decide.normalize_and_compare import (
    MAX_TERMINATION_BYTES,
    is_pod_status_by_kubelet_equal,
    normalize_status,
    sort_container_statuses,
    sort_init_container_statuses,
)
from podstatus.testing.builders import ended, make_pod, make_status, running, waiting

FRACTION = Time.parse("2024-01-31T09:30:00.999999999Z")
WHOLE = Time.parse("2024-01-31T09:30:00Z")


def names(statuses: tuple[ContainerStatus, ...] | None) -> list[str]:
    return [status.name for status in statuses or ()]


def message_of(status: PodStatus, *, last: bool = False) -> str:
    assert status.container_statuses is not None
    container = status.container_statuses[0]
    state = container.last_state if last else container.state
    assert state.terminated is not None
    return state.terminated.message


# Times


def test_all_times_lose_their_fractions() -> None:
    run = running("app", since="2024-01-31T09:30:00.999999999Z")
    end = ended("app")
    assert end.state.terminated is not None
    terminated = structs.replace(end.state.terminated, started_at=FRACTION, finished_at=FRACTION)
    end = structs.replace(end, state=structs.replace(end.state, terminated=terminated))
    probed = PodCondition(type="x", last_probe_time=FRACTION, last_transition_time=FRACTION)
    status = PodStatus(
        start_time=FRACTION,
        conditions=(probed,),
        container_statuses=(structs.replace(run, last_state=end.state),),
        init_container_statuses=(end,),
        ephemeral_container_statuses=(run,),
    )
    text = repr(normalize_status(make_pod(), status))
    assert "09:30:00Z" in text
    assert ".999" not in text


def test_a_container_that_runs_and_has_terminated_is_normalised_in_both_states() -> None:
    run, end = running("app").state.running, ended("app").state.terminated
    assert run is not None
    assert end is not None
    state = ContainerState(running=run, terminated=structs.replace(end, finished_at=FRACTION))
    container = structs.replace(running("app"), state=state)
    status = normalize_status(make_pod(), make_status("Running", container))
    assert status.container_statuses is not None
    normalised = status.container_statuses[0].state
    assert normalised.running == run
    assert normalised.terminated is not None
    assert normalised.terminated.finished_at == WHOLE


@pytest.mark.parametrize("field", ["last_probe_time", "last_transition_time"])
def test_either_time_of_a_condition_loses_its_fraction(field: str) -> None:
    condition = structs.replace(PodCondition(type="x"), **{field: FRACTION})
    status = normalize_status(make_pod(), PodStatus(conditions=(condition,)))
    assert status.conditions == (structs.replace(condition, **{field: WHOLE}),)


def test_a_time_that_cannot_be_written_is_unset() -> None:
    far = Time.parse("9999-12-31T23:59:59-01:00")
    status = normalize_status(make_pod(), PodStatus(start_time=far))
    assert status.start_time == UNSET_TIME


def test_no_start_time_stays_none() -> None:
    assert normalize_status(make_pod(), PodStatus()).start_time is None


# Messages


@pytest.mark.parametrize(
    ("regular", "init", "ephemeral", "limit"),
    [(1, 0, 0, 12288), (2, 1, 0, 4096), (3, 2, 2, 1755), (0, 0, 0, 12288)],
)
def test_surprise_27_each_container_of_the_spec_gets_its_share_of_bytes(
    regular: int, init: int, ephemeral: int, limit: int
) -> None:
    pod = make_pod(containers=[f"c{i}" for i in range(regular)])
    spec = structs.replace(
        pod.spec,
        init_containers=tuple(Container(name=f"i{i}") for i in range(init)),
        ephemeral_containers=tuple(EphemeralContainer(name=f"e{i}") for i in range(ephemeral)),
    )
    pod = structs.replace(pod, spec=spec)
    status = make_status("", ended("c0", message="x" * 20_000))
    assert len(message_of(normalize_status(pod, status))) == limit
    exactly = make_status("", ended("c0", message="x" * limit))
    assert normalize_status(pod, exactly) == exactly


def test_surprise_27_bytes_count_not_characters() -> None:
    status = make_status("", ended("app", message="€" * 5000))
    cut = message_of(normalize_status(make_pod(), status))
    assert cut == "€" * (MAX_TERMINATION_BYTES // 3)


def test_surprise_27_messages_of_the_last_state_are_cut_too_and_of_all_three_lists() -> None:
    long = ended("app", message="x" * 20_000)
    for now in (running("app"), waiting("app")):
        again = structs.replace(now, last_state=long.state)
        status = normalize_status(make_pod(), make_status("", again))
        assert len(message_of(status, last=True)) == MAX_TERMINATION_BYTES
    status = normalize_status(
        make_pod(), PodStatus(init_container_statuses=(long,), ephemeral_container_statuses=(long,))
    )
    for statuses in (status.init_container_statuses, status.ephemeral_container_statuses):
        shown = PodStatus(container_statuses=statuses)
        assert len(message_of(shown)) == MAX_TERMINATION_BYTES


def test_surprise_27_only_termination_messages_are_cut() -> None:
    long = "x" * 20_000
    wait = waiting("app")
    assert wait.state.waiting is not None
    reason = structs.replace(wait.state.waiting, message=long)
    wait = structs.replace(wait, state=structs.replace(wait.state, waiting=reason))
    status = structs.replace(make_status("", wait), message=long)
    assert normalize_status(make_pod(), status) == status


def test_surprise_28_a_split_character_grows_on_the_wire_and_never_compares_equal() -> None:
    pod = make_pod()
    cut = normalize_status(pod, make_status("", ended("app", message="x" * 12287 + "€")))
    assert len(message_of(cut).encode(errors="surrogateescape")) == MAX_TERMINATION_BYTES

    shown = from_document(to_document(cut), PodStatus)
    assert message_of(shown) == "x" * 12287 + "\N{REPLACEMENT CHARACTER}"
    again = normalize_status(pod, shown)
    assert message_of(again) == message_of(cut).replace("\udce2", "\udcef")
    assert not is_pod_status_by_kubelet_equal(again, cut, FeatureGates())


# Orders


def test_containers_are_sorted_by_name() -> None:
    containers = (running("b"), running("B"), running("a"))
    status = normalize_status(
        make_pod(),
        PodStatus(container_statuses=containers, ephemeral_container_statuses=containers),
    )
    assert names(status.container_statuses) == ["B", "a", "b"]
    assert names(status.ephemeral_container_statuses) == ["B", "a", "b"]
    assert sort_container_statuses(None) is None


def sort_init(pod: Pod, *statuses: str) -> list[str]:
    given = tuple(waiting(name) for name in statuses)
    return names(sort_init_container_statuses(pod.spec, given))


def test_init_containers_are_in_the_order_of_the_spec() -> None:
    pod = make_pod(init_containers=("z", "a", "m"))
    assert sort_init(pod, "a", "m", "z") == ["z", "a", "m"]
    status = PodStatus(init_container_statuses=(waiting("m"), waiting("z")))
    assert names(normalize_status(pod, status).init_container_statuses) == ["z", "m"]


@pytest.mark.parametrize(
    ("given", "sorted_names"),
    [
        (("x", "y", "b", "a"), ["a", "b", "y", "x"]),
        (("x", "a", "y", "b"), ["a", "b", "y", "x"]),
        (("x", "y"), ["x", "y"]),
        (("a", "x", "b"), ["a", "b", "x"]),
        (("a", "a", "b"), ["a", "b", "a"]),
    ],
)
def test_surprise_26_leftover_init_statuses_change_order_as_others_are_swapped_in(
    given: tuple[str, ...], sorted_names: list[str]
) -> None:
    assert sort_init(make_pod(init_containers=("a", "b")), *given) == sorted_names


def test_normalising_twice_changes_nothing() -> None:
    pod = make_pod(containers=("b", "a"), init_containers=("i",))
    status = make_status("Running", ended("b", message="y" * 9000), running("a"), Ready="True")
    once = normalize_status(pod, structs.replace(status, start_time=FRACTION))
    assert normalize_status(pod, once) == once
    assert once.start_time == WHOLE


def test_nil_and_empty_lists_stay_what_they_are() -> None:
    assert normalize_status(make_pod(), PodStatus()) == PodStatus()
    empty = PodStatus(conditions=(), container_statuses=(), init_container_statuses=())
    assert normalize_status(make_pod(), empty) == empty
