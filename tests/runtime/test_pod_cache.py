from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.runtime.pod_cache import PodCache
from podstatus.runtime.port import RuntimePod

A, B = PodUID("uid-a"), PodUID("uid-b")


def pod(uid: PodUID, name: str = "") -> RuntimePod:
    return RuntimePod(uid=uid, namespace="default", name=name, facts=PodFacts())


def test_a_list_that_was_asked_for_before_another_one_is_passed_over() -> None:
    cache = PodCache()
    first, second = cache.next_request(), cache.next_request()
    assert cache.apply_list(second, [pod(A, "new")]) == [A]
    assert cache.apply_list(first, [pod(A, "old"), pod(B)]) == []
    assert dict(cache.pods()) == {A: pod(A, "new")}


def test_an_answer_about_one_pod_that_was_asked_for_before_a_list_is_passed_over() -> None:
    cache = PodCache()
    single, all_pods = cache.next_request(), cache.next_request()
    assert cache.apply_list(all_pods, []) == []
    assert not cache.apply_pod(single, A, pod(A))
    assert cache.find(A) is None


def test_of_two_answers_about_one_pod_the_one_asked_for_later_counts() -> None:
    cache = PodCache()
    first, second = cache.next_request(), cache.next_request()
    assert cache.apply_pod(second, A, pod(A, "new"))
    assert not cache.apply_pod(first, A, pod(A, "old"))
    assert cache.find(A) == pod(A, "new")


def test_a_list_that_was_asked_for_later_counts_again() -> None:
    cache = PodCache()
    assert cache.apply_pod(cache.next_request(), A, pod(A))
    assert cache.apply_list(cache.next_request(), []) == [A]
    assert cache.find(A) is None
