"""References that a static pod must not have, as in upstream."""

from typing import Any

import pytest

from podstatus.kube.encoding.codec import from_document
from podstatus.kube.objects.pod_spec import PodSpec
from podstatus.sources.manifest.api_references import api_references


def volume(**source: Any) -> dict[str, Any]:
    return {"volumes": [{"name": "v", **source}]}


def projected(**source: Any) -> dict[str, Any]:
    return volume(projected={"sources": [source]})


def container(**more: Any) -> list[dict[str, Any]]:
    return [{"name": "a", "image": "a", **more}]


SECRET = {"secretRef": {"name": "s"}}


@pytest.mark.parametrize(
    ("spec", "found"),
    [
        ({}, []),
        ({"serviceAccountName": "me"}, ["serviceaccounts"]),
        ({"imagePullSecrets": [{"name": "s"}]}, ["secrets"]),
        ({"imagePullSecrets": [{}]}, []),
        ({"containers": container(envFrom=[SECRET])}, ["secrets"]),
        ({"initContainers": container(envFrom=[{"configMapRef": {"name": "c"}}])}, ["configmaps"]),
        (
            {"containers": container(env=[{"name": "A", "valueFrom": {"secretKeyRef": {}}}])},
            ["secrets"],
        ),
        (
            {"containers": container(env=[{"name": "A", "valueFrom": {"configMapKeyRef": {}}}])},
            ["configmaps"],
        ),
        (
            {"containers": container(env=[{"name": "A", "valueFrom": {"fieldRef": {}}}])},
            [],
        ),
        ({"resourceClaims": [{"name": "r"}]}, ["resourceclaims"]),
        (volume(hostPath={"path": "/"}), []),
        (volume(emptyDir={}), []),
        (volume(downwardAPI={}), []),
        (volume(nfs={"server": "s", "path": "/"}), []),
        (volume(image={"reference": "i"}), []),
        (volume(configMap={"name": "c"}), ["configmaps (via configmap volumes)"]),
        (volume(secret={"secretName": "s"}), ["secrets (via secret volumes)"]),
        (volume(csi={"driver": "d"}), ["csidrivers (via CSI volumes)"]),
        (volume(glusterfs={}), ["endpoints (via glusterFS volumes)"]),
        (volume(persistentVolumeClaim={"claimName": "c"}), ["persistentvolumeclaims"]),
        (volume(ephemeral={}), ["persistentvolumeclaims (via ephemeral volumes)"]),
        (volume(azureFile={}), ["secrets (via azureFile volumes)"]),
        (volume(cephfs=SECRET), ["secrets"]),
        (volume(rbd=SECRET), ["secrets"]),
        (volume(iscsi=SECRET), ["secrets"]),
        (volume(iscsi={}), []),
        (volume(flexVolume=SECRET), ["secrets"]),
        (volume(cinder=SECRET), ["secrets"]),
        (volume(scaleIO=SECRET), ["secrets"]),
        (volume(storageos=SECRET), ["secrets"]),
        (projected(downwardAPI={}), []),
        (projected(configMap={"name": "c"}), ["configmaps (via projected volumes)"]),
        (projected(secret={"name": "s"}), ["secrets (via projected volumes)"]),
        (projected(serviceAccountToken={}), ["serviceaccounts (via projected volumes)"]),
        (projected(clusterTrustBundle={}), ["clustertrustbundles"]),
        (projected(podCertificate={}), ["podcertificates"]),
        (
            {"serviceAccountName": "me", **volume(secret={}), "imagePullSecrets": [{"name": "s"}]},
            ["serviceaccounts", "secrets", "secrets (via secret volumes)"],
        ),
    ],
)
def test_references_are_found(spec: dict[str, Any], found: list[str]) -> None:
    assert api_references(from_document(spec, PodSpec)) == found
