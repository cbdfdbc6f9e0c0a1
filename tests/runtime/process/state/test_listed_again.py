"""A change of one container does not cost a rebuild of the whole pod."""

from msgspec import structs

from podstatus.kube.objects.pod import PodUID
from podstatus.runtime.process.records.models import LaunchRecord, PodRecord
from podstatus.runtime.process.state.pod_state import ContainerAttempt, PodState, runtime_pod

RECORD = PodRecord(
    uid=PodUID("u"), namespace="ns", name="p", sandbox_id="s", sandbox_attempt=0, created_at=1
)


def an_attempt(name: str) -> ContainerAttempt:
    launch = LaunchRecord(
        id=name,
        container=name,
        restart_count=0,
        sandbox_id="s",
        created_at=1,
        image="i",
        stop_signal=15,
        message_path="",
        message_fallback=False,
        argv=("true",),
        env={},
        cwd="/",
        log_max_bytes=1,
        log_max_files=1,
    )
    return ContainerAttempt(launch=launch)


def test_attempts_that_have_not_changed_are_listed_as_the_same_objects() -> None:
    state = PodState(record=RECORD, attempts=(an_attempt("a"), an_attempt("b")))
    before = runtime_pod(state, ())
    changed = state.with_attempt(structs.replace(state.attempts[0], message="last words"))
    after = runtime_pod(changed, (), (state, before))
    assert after == runtime_pod(changed, ())
    old, new = ({c.name: c for c in pod.facts.containers} for pod in (before, after))
    assert new["b"] is old["b"]
    assert new["a"].message == "last words"


def test_attempts_of_an_earlier_sandbox_are_not_listed_as_before() -> None:
    state = PodState(record=RECORD, attempts=(an_attempt("a"),))
    before = runtime_pod(state, ())
    moved = structs.replace(state, record=structs.replace(RECORD, sandbox_id="t"))
    after = runtime_pod(moved, (), (state, before))
    assert [c.active for c in before.facts.containers] == [True]
    assert [c.active for c in after.facts.containers] == [False]
