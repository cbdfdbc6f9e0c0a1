from podstatus.status.circuit import Circuit


def failed(circuit: Circuit, times: int, *, now: float = 0.0) -> Circuit:
    for _ in range(times):
        circuit = circuit.failed(now, 0.0)
    return circuit


def test_it_opens_after_so_many_failures_in_a_row() -> None:
    circuit = failed(Circuit(after=3), 2)
    assert circuit.most_in_flight(0, 32) == 32
    assert failed(circuit.answered(), 2).most_in_flight(0, 32) == 32
    assert failed(circuit, 1).most_in_flight(0, 32) == 0


def test_one_pod_at_a_time_is_let_through_when_the_wait_is_over() -> None:
    circuit = failed(Circuit(after=3), 3, now=10)
    assert [circuit.most_in_flight(now, 32) for now in (10, 10.4, 10.5, 99)] == [0, 0, 1, 1]


def test_waits_grow_up_to_ten_seconds() -> None:
    waits = [failed(Circuit(after=1), times).closed_until for times in (1, 2, 3, 4, 5, 6, 99)]
    assert waits == [0.5, 1, 2, 4, 8, 10, 10]


def test_an_answer_closes_it_and_the_next_outage_begins_anew() -> None:
    circuit = failed(Circuit(after=1), 9).answered()
    assert not circuit.is_open
    assert failed(circuit, 1).closed_until == 0.5


def test_when_forgiven_one_may_try_and_a_failure_shuts_it_for_longer() -> None:
    circuit = failed(Circuit(after=1), 2).forgiven()
    assert circuit.most_in_flight(0, 32) == 1
    assert failed(circuit, 1).closed_until == 2


def test_without_a_number_it_never_opens() -> None:
    assert failed(Circuit(after=0), 999).most_in_flight(0, 32) == 32
