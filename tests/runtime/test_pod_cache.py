from podstatus.kube.objects.pod import PodUID
from podstatus.kube.objects.runtime_facts import PodFacts
from podstatus.runtime.pod_cache import KnownPods
from podstatus.runtime.port import RuntimePod

A, B = PodUID("uid-a"), PodUID("uid-b")


def pod(uid: PodUID, name: str = "") -> RuntimePod:
    return RuntimePod(uid=uid, namespace="default", name=name, facts=PodFacts())


def test_a_list_that_was_asked_for_before_another_one_is_passed_over() -> None:
    known = KnownPods()
    first, second = known.ask(), known.ask()
    assert known.take_list(second, [pod(A, "new")]) == [A]
    assert known.take_list(first, [pod(A, "old"), pod(B)]) == []
    assert dict(known.pods()) == {A: pod(A, "new")}


def test_an_answer_about_one_pod_that_was_asked_for_before_a_list_is_passed_over() -> None:
    known = KnownPods()
    single, all_pods = known.ask(), known.ask()
    assert known.take_list(all_pods, []) == []
    assert not known.take_one(single, A, pod(A))
    assert known.find(A) is None


def test_of_two_answers_about_one_pod_the_one_asked_for_later_counts() -> None:
    known = KnownPods()
    first, second = known.ask(), known.ask()
    assert known.take_one(second, A, pod(A, "new"))
    assert not known.take_one(first, A, pod(A, "old"))
    assert known.find(A) == pod(A, "new")


def test_a_list_that_was_asked_for_later_counts_again() -> None:
    known = KnownPods()
    assert known.take_one(known.ask(), A, pod(A))
    assert known.take_list(known.ask(), []) == [A]
    assert known.find(A) is None
