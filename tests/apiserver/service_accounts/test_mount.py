"""The volume with a token, for pods that ask for it."""

from copy import deepcopy
from typing import Any

import pytest

from podstatus.apiserver.service_accounts.mount import MOUNT_PATH, mount_service_account_token
from podstatus.apiserver.strategies.base import Document
from podstatus.apiserver.strategies.by_resource import STRATEGIES


def pod(**spec: Any) -> Document:
    container = {"name": "app", "image": "a", "command": ["x"]}
    return {
        "metadata": {"name": "p", "namespace": "ns"},
        "spec": {"containers": [container], **spec},
    }


@pytest.mark.parametrize("wish", [{}, {"automountServiceAccountToken": False}])
def test_other_pods_are_not_changed(wish: Document) -> None:
    assert mount_service_account_token(pod(**wish)) == pod(**wish)


def test_every_container_gets_the_token_the_certificate_and_the_namespace() -> None:
    asking = pod(automountServiceAccountToken=True, initContainers=[{"name": "init", "image": "a"}])
    before = deepcopy(asking)
    mounted = mount_service_account_token(asking)
    assert asking == before
    spec = mounted["spec"]
    mount = {"name": "kube-api-access", "readOnly": True, "mountPath": MOUNT_PATH}
    for container in (*spec["containers"], *spec["initContainers"]):
        assert container["volumeMounts"] == [mount]
    (volume,) = spec["volumes"]
    paths = [
        source.get("path") or source["items"][0]["path"]
        for projection in volume["projected"]["sources"]
        for source in projection.values()
    ]
    assert paths == ["token", "ca.crt", "namespace"]
    assert (spec["serviceAccountName"], spec["serviceAccount"]) == ("default", "default")
    strategy = STRATEGIES["pods"]
    created = strategy.prepare_create(mounted)
    assert strategy.validate_create(created) == []


def test_a_container_with_a_mount_of_its_own_keeps_it() -> None:
    own = {"name": "mine", "mountPath": MOUNT_PATH}
    asking = pod(automountServiceAccountToken=True, serviceAccountName="robot")
    asking["spec"]["containers"][0]["volumeMounts"] = [own]
    spec = mount_service_account_token(asking)["spec"]
    assert spec["containers"][0]["volumeMounts"] == [own]
    assert "volumes" not in spec
    assert spec["serviceAccountName"] == "robot"


def test_the_name_of_the_volume_is_unused() -> None:
    asking = pod(automountServiceAccountToken=True, volumes=[{"name": "kube-api-access"}])
    volumes = mount_service_account_token(asking)["spec"]["volumes"]
    assert [volume["name"] for volume in volumes] == ["kube-api-access", "kube-api-access-1"]


def test_a_mirror_pod_is_not_changed() -> None:
    mirror = pod(automountServiceAccountToken=True)
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    assert mount_service_account_token(mirror) == mirror
