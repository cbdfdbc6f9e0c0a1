from typing import Any

import pytest
from msgspec import structs

from podstatus.kube.objects.pod import CONFIG_MIRROR, CONFIG_SOURCE, ApiUID, Pod
from podstatus.kube.objects.pod_status import PodCondition, PodStatus
from podstatus.pods.pod_manager import PodManager
from podstatus.testing.builders import make_pod, make_static_pod, make_status

STATIC = make_static_pod()
MIRROR = make_static_pod(mirror=True)
MIRROR_UID = ApiUID(MIRROR.uid)
ORDINARY = make_pod()


def test_pods_and_mirror_pods_are_filed_apart() -> None:
    directory = PodManager([ORDINARY, STATIC, MIRROR])
    assert directory.pods() == [ORDINARY, STATIC]
    assert directory.mirror_pods() == [MIRROR]


def test_a_pod_is_found_by_uid_and_by_name() -> None:
    directory = PodManager([ORDINARY])
    assert directory.pod_by_uid(ORDINARY.uid) is ORDINARY
    assert directory.pod_by_name("default", "pod") is ORDINARY
    assert directory.pod_by_name("elsewhere", "pod") is None


def test_the_uid_of_a_mirror_pod_finds_no_pod() -> None:
    assert PodManager([STATIC, MIRROR]).pod_by_uid(MIRROR.uid) is None


@pytest.mark.parametrize("pods", [(STATIC, MIRROR), (MIRROR, STATIC)])
def test_a_static_pod_and_its_mirror_find_each_other_in_either_order(
    pods: tuple[Pod, Pod],
) -> None:
    directory = PodManager(pods)
    assert directory.mirror_pod_by_pod(STATIC) == MIRROR
    assert directory.translate_pod_uid(MIRROR.uid) == STATIC.uid
    assert directory.uid_translations().pod_to_mirror == {STATIC.uid: MIRROR_UID}
    assert directory.uid_translations().mirror_to_pod == {MIRROR_UID: STATIC.uid}


def test_a_static_pod_without_a_mirror_translates_to_none() -> None:
    translations = PodManager([STATIC]).uid_translations()
    assert translations.pod_to_mirror == {STATIC.uid: None}
    assert translations.mirror_to_pod == {}


def test_translations_follow_what_happens_and_those_that_were_given_out_stay() -> None:
    directory = PodManager([STATIC])
    alone = directory.uid_translations()
    directory.update_pod(MIRROR)
    together = directory.uid_translations()
    directory.remove_pod(MIRROR)
    assert directory.uid_translations() == alone
    assert alone.pod_to_mirror == {STATIC.uid: None}
    assert together.pod_to_mirror == {STATIC.uid: MIRROR_UID}
    assert together.mirror_to_pod == {MIRROR_UID: STATIC.uid}
    directory.set_pods([MIRROR])
    assert directory.uid_translations().mirror_to_pod == {}
    directory.update_pod(STATIC)
    assert directory.uid_translations() == together


def test_a_static_pod_that_comes_later_is_translated_too() -> None:
    directory = PodManager()
    assert directory.uid_translations().pod_to_mirror == {}
    directory.update_pod(STATIC)
    assert directory.uid_translations().pod_to_mirror == {STATIC.uid: None}


def test_an_ordinary_pod_that_comes_later_takes_over_a_mirror_of_its_name() -> None:
    directory = PodManager([MIRROR])
    assert directory.uid_translations().mirror_to_pod == {}
    ordinary = structs.replace(STATIC.metadata, annotations={})
    directory.update_pod(structs.replace(STATIC, metadata=ordinary))
    assert directory.uid_translations().mirror_to_pod == {MIRROR_UID: STATIC.uid}


def test_a_pod_that_is_static_no_more_has_no_translation() -> None:
    directory = PodManager([STATIC])
    assert directory.uid_translations().pod_to_mirror == {STATIC.uid: None}
    ordinary = structs.replace(STATIC.metadata, annotations={})
    directory.update_pod(structs.replace(STATIC, metadata=ordinary))
    assert directory.uid_translations().pod_to_mirror == {}
    directory.update_pod(STATIC)
    directory.remove_pod(STATIC)
    assert directory.uid_translations().pod_to_mirror == {}


def test_a_mirror_without_its_static_pod_translates_to_nothing() -> None:
    directory = PodManager([MIRROR])
    assert directory.translate_pod_uid(MIRROR.uid) == MIRROR.uid
    assert directory.uid_translations().mirror_to_pod == {}


def test_an_ordinary_pod_stands_for_itself() -> None:
    directory = PodManager([ORDINARY])
    assert directory.translate_pod_uid(ORDINARY.uid) == ORDINARY.uid
    assert directory.uid_translations().pod_to_mirror == {}


def test_no_uid_translates_to_none_even_beside_a_mirror_without_one() -> None:
    mirror = structs.replace(MIRROR, metadata=structs.replace(MIRROR.metadata, uid=""))
    assert PodManager([STATIC, mirror]).translate_pod_uid("") == ""


def test_an_unknown_uid_translates_to_itself() -> None:
    assert PodManager().translate_pod_uid("unheard of") == "unheard of"


def test_a_pod_from_the_api_is_not_static() -> None:
    pod = make_pod(annotations={CONFIG_SOURCE: "api"})
    assert PodManager([pod]).uid_translations().pod_to_mirror == {}


def test_a_mirror_pod_also_stands_for_an_ordinary_pod_of_its_name() -> None:
    mirror = make_pod(uid="mirror", annotations={CONFIG_MIRROR: "hash"})
    translations = PodManager([ORDINARY, mirror]).uid_translations()
    assert translations.pod_to_mirror == {ORDINARY.uid: "mirror"}


def test_names_in_different_namespaces_are_different() -> None:
    mirror = make_pod(STATIC.name, namespace="other", annotations={CONFIG_MIRROR: "hash"})
    assert PodManager([STATIC, mirror]).mirror_pod_by_pod(STATIC) is None


def test_an_update_replaces_the_pod() -> None:
    directory = PodManager([ORDINARY])
    newer = make_pod(status=make_status("Running"))
    directory.update_pod(newer)
    assert directory.pods() == [newer]
    assert directory.pod_by_name("default", "pod") == newer


def test_an_update_of_the_spec_replaces_it() -> None:
    directory = PodManager([ORDINARY])
    newer = structs.replace(ORDINARY, spec=structs.replace(ORDINARY.spec, node_name="other"))
    directory.update_pod(newer)
    assert directory.pods() == [newer]


def test_a_spec_that_did_not_change_is_not_taken_over_again() -> None:
    directory = PodManager([ORDINARY])
    (stored,) = directory.pods()
    again = structs.replace(ORDINARY, spec=structs.replace(ORDINARY.spec))
    directory.update_pod(again)
    assert directory.pods()[0].spec is stored.spec


def test_a_pod_whose_source_becomes_the_api_is_static_no_more() -> None:
    directory = PodManager([STATIC])
    metadata = structs.replace(STATIC.metadata, annotations={CONFIG_SOURCE: "api"})
    directory.update_pod(structs.replace(STATIC, metadata=metadata))
    assert directory.uid_translations().pod_to_mirror == {}


def test_a_recreated_mirror_takes_over_from_the_old_one() -> None:
    recreated = make_static_pod(mirror=True, uid="mirror-2")
    directory = PodManager([STATIC, MIRROR])
    directory.update_pod(recreated)
    assert directory.mirror_pod_by_pod(STATIC) == recreated
    assert directory.uid_translations().pod_to_mirror == {STATIC.uid: "mirror-2"}
    assert directory.translate_pod_uid(MIRROR.uid) == STATIC.uid


def test_removing_a_mirror_removes_its_translation() -> None:
    directory = PodManager([STATIC, MIRROR])
    directory.remove_pod(MIRROR)
    assert directory.mirror_pods() == []
    assert directory.mirror_pod_by_pod(STATIC) is None
    assert directory.translate_pod_uid(MIRROR.uid) == MIRROR.uid
    assert directory.uid_translations().pod_to_mirror == {STATIC.uid: None}


def test_removing_a_static_pod_keeps_the_translation_of_its_mirror() -> None:
    directory = PodManager([STATIC, MIRROR])
    directory.remove_pod(STATIC)
    assert directory.pods() == []
    assert directory.pod_by_name(STATIC.namespace, STATIC.name) is None
    assert directory.translate_pod_uid(MIRROR.uid) == STATIC.uid
    assert directory.uid_translations().pod_to_mirror == {STATIC.uid: MIRROR_UID}


def test_a_static_pod_that_was_removed_waits_for_no_mirror() -> None:
    directory = PodManager([STATIC])
    directory.remove_pod(STATIC)
    assert directory.uid_translations().pod_to_mirror == {}


def test_removing_a_pod_that_is_not_there_is_harmless() -> None:
    directory = PodManager([ORDINARY])
    directory.remove_pod(STATIC)
    directory.remove_pod(MIRROR)
    assert directory.pods() == [ORDINARY]


def test_setting_pods_replaces_everything() -> None:
    directory = PodManager([STATIC, MIRROR])
    directory.set_pods([ORDINARY])
    assert directory.pods() == [ORDINARY]
    assert directory.mirror_pods() == []
    assert directory.translate_pod_uid(MIRROR.uid) == MIRROR.uid
    assert directory.uid_translations().pod_to_mirror == {}


def test_pods_may_be_set_from_what_the_directory_itself_tells() -> None:
    directory = PodManager([ORDINARY, STATIC])
    directory.set_pods(pod for uid in [STATIC.uid] if (pod := directory.pod_by_uid(uid)))
    assert directory.pods() == [STATIC]


@pytest.mark.parametrize("wrong", [None, {"metadata": {}}, "pod"])
def test_what_is_no_pod_is_refused_and_everything_stays(wrong: Any) -> None:
    directory = PodManager([ORDINARY])
    with pytest.raises(TypeError, match="expected a Pod"):
        directory.set_pods([STATIC, wrong])
    with pytest.raises(TypeError, match="expected a Pod"):
        directory.update_pod(wrong)
    assert directory.pods() == [ORDINARY]


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"metadata": {}}, "metadata"),
        ({"metadata": structs.replace(ORDINARY.metadata, uid=["u"])}, r"metadata\.uid"),
        ({"spec": None}, "spec"),
        ({"spec": structs.replace(ORDINARY.spec, node_name=5)}, r"spec\.node_name"),
        ({"status": structs.replace(ORDINARY.status, phase=b"x")}, r"status\.phase"),
    ],
)
def test_what_does_not_belong_into_a_pod_is_named(wrong: dict[str, Any], path: str) -> None:
    directory = PodManager([ORDINARY])
    with pytest.raises(TypeError, match=f"^{path}: expected"):
        directory.update_pod(structs.replace(ORDINARY, **wrong))
    assert directory.pods() == [ORDINARY]


def test_what_the_caller_changes_later_does_not_change_the_directory() -> None:
    annotations = {CONFIG_SOURCE: "file"}
    directory = PodManager([make_pod(annotations=annotations)])
    annotations[CONFIG_SOURCE] = "api"
    (pod,) = directory.pods()
    assert pod.metadata.annotations == {CONFIG_SOURCE: "file"}


def test_what_the_caller_changes_after_an_update_does_not_change_the_directory() -> None:
    ready = PodCondition(type="Ready", status="True")
    conditions, annotations = [ready], {"a": "1"}
    directory = PodManager([ORDINARY])
    directory.update_pod(
        structs.replace(
            ORDINARY,
            metadata=structs.replace(ORDINARY.metadata, annotations=annotations),
            status=PodStatus(conditions=conditions),  # type: ignore[arg-type]
        )
    )
    conditions.clear()
    annotations.clear()
    (pod,) = directory.pods()
    assert (pod.metadata.annotations, pod.status.conditions) == ({"a": "1"}, (ready,))


def test_translations_are_those_of_one_moment() -> None:
    directory = PodManager([STATIC])
    translations = directory.uid_translations()
    directory.update_pod(MIRROR)
    assert translations.pod_to_mirror == {STATIC.uid: None}
