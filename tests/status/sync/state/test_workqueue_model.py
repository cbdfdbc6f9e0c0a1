"""The workqueue as a state machine, compared with a model that has plain sets and no heaps."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podstatus.kube.api_errors import UnavailableError, api_error
from podstatus.kube.objects.pod import ApiUID, PodUID
from podstatus.status.policy import ParallelSyncOptions
from podstatus.status.sync.state.retry import TRANSIENT_FAILURES, Failure, Retry
from podstatus.status.sync.state.workqueue import Priority, SyncQueue

OPTIONS = ParallelSyncOptions(in_flight=3, circuit_after=2)
PODS = [PodUID(name) for name in "abcdef"]
UIDS = st.sampled_from(PODS)
ERRORS = [
    UnavailableError("down"),
    UnavailableError("timeout"),
    api_error(404, "gone"),
    api_error(409, "conflict"),
    api_error(422, "invalid"),
    ZeroDivisionError(),
]


class QueueAndModel(RuleBasedStateMachine):
    """Pods are queued, synced, fail, are retried and forgotten, in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.queue = SyncQueue(OPTIONS)
        self.now = 100.0
        self.versions = dict.fromkeys(PODS, 1)
        self.deadlines: dict[PodUID, float] = {}
        self.in_flight: dict[PodUID, bool] = {}
        """Whether each pod in flight is a probe."""
        self.retries: dict[PodUID, Retry] = {}

    @rule(uid=UIDS, priority=st.sampled_from(Priority), is_new=st.booleans())
    def add(self, uid: PodUID, priority: Priority, *, is_new: bool) -> None:
        self.versions[uid] += is_new
        state = self.queue.state(uid, ApiUID(uid))
        added = self.queue.add(uid, state, self.versions[uid], priority, self.now)
        retry = self.retries.get(uid)
        backs_off = retry is not None and self.now < retry.due(self.versions[uid])
        assert added is (uid in self.in_flight or not backs_off)
        if added and uid not in self.in_flight:
            deadline = self.now + priority.value
            self.deadlines[uid] = min(self.deadlines.get(uid, deadline), deadline)

    @rule()
    def get(self) -> None:
        was_open = self.queue.is_circuit_open
        uid = self.queue.get(self.now)
        if uid is None:
            assert was_open or not self.deadlines or len(self.in_flight) == OPTIONS.in_flight
            return
        assert len(self.in_flight) < (1 if was_open else OPTIONS.in_flight)
        assert self.deadlines.pop(uid) <= min(self.deadlines.values(), default=float("inf"))
        self.in_flight[uid] = was_open

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def succeed(self, data: st.DataObject) -> None:
        uid = data.draw(st.sampled_from(sorted(self.in_flight)))
        was_open = self.queue.is_circuit_open
        released = self.queue.succeeded(uid)
        if not self.in_flight[uid]:
            self.retries.pop(uid, None)
        elif uid in self.retries:
            self.retries[uid] = self.retries[uid].immediate()
        self._released(released, was_open=was_open)
        self._land(uid)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data(), error=st.sampled_from(ERRORS))
    def fail(self, data: st.DataObject, error: Exception) -> None:
        uid = data.draw(st.sampled_from(sorted(self.in_flight)))
        was_open = self.queue.is_circuit_open
        retry, released = self.queue.failed(
            uid, self.versions[uid], error, now=self.now, jitter=0.0
        )
        assert retry.failures == 1 + (self.retries[uid].failures if uid in self.retries else 0)
        responded = retry.failure not in (Failure.UNAVAILABLE, Failure.BROKEN)
        self._released(released, was_open=was_open and responded)
        self.retries[uid] = retry
        self._land(uid)

    @rule(seconds=st.sampled_from([0.001, 0.6, 5.0, 70.0, 400.0]))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        due = self.queue.pop_due(self.now)
        assert len(due) == len(set(due))
        missed = [
            uid
            for uid, retry in self.retries.items()
            if retry.at <= self.now and uid not in due and uid not in self.in_flight
            if (at := self.queue.next_wakeup(self.now)) is not None and at <= self.now
        ]
        assert missed == []

    @rule(uid=UIDS)
    def forget(self, uid: PodUID) -> None:
        self.queue.forget(uid)
        self.deadlines.pop(uid, None)
        self.retries.pop(uid, None)

    @rule()
    def drain(self) -> None:
        released = self.queue.retry_all_transient()
        transient = {u for u, r in self.retries.items() if r.failure in TRANSIENT_FAILURES}
        assert set(released) == transient
        for uid in released:
            self.retries[uid] = self.retries[uid].immediate()

    @invariant()
    def counts_agree(self) -> None:
        assert self.queue.in_flight == len(self.in_flight) <= OPTIONS.in_flight
        rejected = [retry.failure for retry in self.retries.values()].count(Failure.REJECTED)
        assert self.queue.quarantined == rejected
        assert self.queue.is_healthy is not (bool(self.retries) or self.queue.is_circuit_open)

    @invariant()
    def only_known_pods_have_a_state(self) -> None:
        known = self.in_flight.keys() | self.deadlines.keys() | self.retries.keys()
        assert len(known) <= len(self.queue) <= len(PODS)

    def _released(self, released: list[PodUID], *, was_open: bool) -> None:
        probes = {uid for uid, retry in self.retries.items() if retry.probe}
        assert set(released) == (probes if was_open else set())
        for uid in released:
            self.retries[uid] = self.retries[uid].immediate()

    def _land(self, uid: PodUID) -> None:
        self.queue.done(uid)
        del self.in_flight[uid]


TestQueueAndModel = QueueAndModel.TestCase
TestQueueAndModel.settings = settings(max_examples=150, stateful_step_count=60, deadline=None)
