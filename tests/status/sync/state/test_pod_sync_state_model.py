"""The state of one pod as a state machine, compared with a server whose responses get lost."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from msgspec import structs

from podstatus.kube.objects.pod import ApiUID, Pod
from podstatus.status.sync.state.pod_sync_state import MAX_WATCH_LAG_SECONDS, PodSyncState
from podstatus.testing.builders import make_pod

UID = ApiUID("pod-uid")
OUTCOMES = ["answered", "refused", "conflict", "lost", "applied, not answered"]


def at(version: int) -> Pod:
    pod = make_pod()
    metadata = structs.replace(pod.metadata, resource_version=str(version))
    return structs.replace(pod, metadata=metadata)


class StateAndServer(RuleBasedStateMachine):
    """The object has one more version with each write; the watch shows versions in order."""

    def __init__(self) -> None:
        super().__init__()
        self.state = PodSyncState(api_uid=UID)
        self.now = 100.0
        self.version = 1
        self.shown = 0
        """The version that the watch has shown; 0: none."""
        self.answered = 0
        """The version of the last response; 0: none, or it may be old."""
        self.answered_at = self.now
        self.written = 0
        """The version of the last patch that was applied before the last GET or response."""
        self.is_uncertain = False
        self.pending = 0
        """Patches without a response that may still be applied."""
        self.may_land_late = False

    @rule(outcome=st.sampled_from(OUTCOMES))
    def patch(self, outcome: str) -> None:
        if self._base() is None:
            self.read()
        was_late = self.state.may_land_late
        self.state = self.state.patch_started()
        match outcome:
            case "answered":
                self._respond(self._write())
                self.state = self.state.acknowledged(at(self.version), 1, self.now)
                self.may_land_late = False
            case "refused":
                self.state = self.state.patch_not_applied(may_land_late=was_late)
            case "conflict":
                self.state = self.state.object_replaced()
                self.answered, self.is_uncertain, self.may_land_late = 0, True, False
            case "lost":
                self.pending += 1
                self.is_uncertain = self.may_land_late = True
            case _:
                self._write()
                self.is_uncertain = self.may_land_late = True

    @rule()
    def read(self) -> None:
        self._respond(self.version)
        self.state = self.state.read(at(self.version), self.now)

    @precondition(lambda self: self.pending)
    @rule()
    def an_earlier_patch_is_applied(self) -> None:
        self.pending -= 1
        self._write()

    @rule()
    def another_client_writes(self) -> None:
        self.version += 1

    @rule(data=st.data())
    def watch(self, data: st.DataObject) -> None:
        self.shown = data.draw(st.integers(max(self.shown, 1), self.version))

    @rule(seconds=st.sampled_from([1.0, MAX_WATCH_LAG_SECONDS + 1]))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @invariant()
    def the_base_is_the_newest_copy_that_is_certain(self) -> None:
        base = self._base()
        if self.is_uncertain:
            assert base is None
            return
        newest = max(self.shown, self.answered)
        lags = self.now - self.answered_at > MAX_WATCH_LAG_SECONDS
        if newest == 0 or (newest > self.shown and lags):
            assert base is None
        else:
            assert base is not None
            assert int(base.metadata.resource_version) == newest >= self.written

    @invariant()
    def a_patch_that_may_land_late_is_remembered_until_a_later_one_is_decided(self) -> None:
        assert self.state.may_land_late is self.may_land_late

    def _base(self) -> Pod | None:
        return self.state.patch_base(at(self.shown) if self.shown else None, self.now)

    def _write(self) -> int:
        self.version += 1
        return self.version

    def _respond(self, version: int) -> None:
        """A response shows all writes before it."""
        self.answered, self.answered_at = version, self.now
        self.written, self.is_uncertain = version, False


TestStateAndServer = StateAndServer.TestCase
TestStateAndServer.settings = settings(max_examples=100, stateful_step_count=30, deadline=None)
