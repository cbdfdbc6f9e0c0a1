from podstatus.kube.objects.pod import PodUID
from podstatus.status.sync.state.circuit_breaker import CircuitBreaker


def failed(circuit: CircuitBreaker, pods: int, *, now: float = 0.0) -> CircuitBreaker:
    """Return a circuit breaker after this many pods failed."""
    for number in range(pods):
        circuit = circuit.failed(PodUID(str(number)), now, 0.0)
    return circuit


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    circuit = failed(CircuitBreaker(failure_threshold=3), 2)
    assert circuit.max_in_flight(0, 32) == 32
    assert failed(circuit.success(), 2).max_in_flight(0, 32) == 32
    assert failed(circuit, 3).max_in_flight(0, 32) == 0


def test_one_pod_that_fails_again_and_again_does_not_open_it() -> None:
    circuit = CircuitBreaker(failure_threshold=2)
    for _ in range(99):
        circuit = circuit.failed(PodUID("a"), 0, 0)
    assert not circuit.is_open
    assert circuit.failed(PodUID("b"), 0, 0).is_open


def test_a_few_pods_are_let_through_when_the_wait_is_over() -> None:
    circuit = failed(CircuitBreaker(failure_threshold=3), 3, now=10)
    assert [circuit.max_in_flight(now, 32) for now in (10, 10.4, 10.5, 99)] == [0, 0, 4, 4]
    assert circuit.max_in_flight(99, 1) == 1


def test_waits_grow_up_to_five_seconds() -> None:
    circuit, waits = CircuitBreaker(failure_threshold=1), []
    for _ in range(6):
        now = circuit.open_until
        circuit = circuit.failed(PodUID("a"), now, 0)
        waits.append(circuit.open_until - now)
    assert waits == [0.5, 1, 2, 4, 5, 5]


def test_those_who_set_out_together_count_once() -> None:
    assert failed(CircuitBreaker(failure_threshold=1), 32).open_until == 0.5


def test_a_response_closes_the_circuit_and_resets_the_back_off() -> None:
    circuit = failed(CircuitBreaker(failure_threshold=1), 9).success()
    assert not circuit.is_open
    assert failed(circuit, 1).open_until == 0.5


def test_when_forgiven_some_may_try_and_a_failure_shuts_it_for_longer() -> None:
    circuit = failed(CircuitBreaker(failure_threshold=1), 1).half_open()
    assert circuit.max_in_flight(0, 32) == 4
    assert failed(circuit, 1).open_until == 1


def test_without_a_number_it_never_opens() -> None:
    assert failed(CircuitBreaker(failure_threshold=0), 999).max_in_flight(0, 32) == 32
