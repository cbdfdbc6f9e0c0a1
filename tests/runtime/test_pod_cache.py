from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.runtime.pod_cache import PodCache
from podstatus.runtime.port import RuntimePod

A, B = PodUID("uid-a"), PodUID("uid-b")


def pod(uid: PodUID, name: str = "") -> RuntimePod:
    return RuntimePod(uid=uid, namespace="default", name=name, facts=PodFacts())


def test_a_list_that_was_asked_for_before_another_one_is_passed_over() -> None:
    known = PodCache()
    first, second = known.next_request(), known.next_request()
    assert known.apply_list(second, [pod(A, "new")]) == [A]
    assert known.apply_list(first, [pod(A, "old"), pod(B)]) == []
    assert dict(known.pods()) == {A: pod(A, "new")}


def test_an_answer_about_one_pod_that_was_asked_for_before_a_list_is_passed_over() -> None:
    known = PodCache()
    single, all_pods = known.next_request(), known.next_request()
    assert known.apply_list(all_pods, []) == []
    assert not known.apply_pod(single, A, pod(A))
    assert known.find(A) is None


def test_of_two_answers_about_one_pod_the_one_asked_for_later_counts() -> None:
    known = PodCache()
    first, second = known.next_request(), known.next_request()
    assert known.apply_pod(second, A, pod(A, "new"))
    assert not known.apply_pod(first, A, pod(A, "old"))
    assert known.find(A) == pod(A, "new")


def test_a_list_that_was_asked_for_later_counts_again() -> None:
    known = PodCache()
    assert known.apply_pod(known.next_request(), A, pod(A))
    assert known.apply_list(known.next_request(), []) == [A]
    assert known.find(A) is None
