"""Manifests are decoded into pods or helpful messages."""

import json
from typing import Any

import pytest
import yaml

from podstatus.kube.encoding.codec import to_document
from podstatus.kube.objects.pod import is_mirror_pod, is_static_pod
from podstatus.kube.objects.pod_spec import Toleration
from podstatus.sources.manifest.static_pods import ManifestOrigin
from podstatus.sources.manifest.yaml_documents import DocumentError, read_document, split_documents
from tests.sources.manifest.bad_manifests import BAD
from tests.support.manifests import FILE, URL, WEB, named, read


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD.keys())
def test_a_bad_manifest_says_what_is_wrong(text: str | bytes, message: str) -> None:
    manifest = read(text)
    separator = ", " if message.startswith("document ") else ": "
    assert [str(problem) for problem in manifest.problems] == [f"/m/a.yaml{separator}{message}"]
    assert manifest.pods == ()


def test_there_are_enough_bad_manifests() -> None:
    assert len(BAD) >= 25


def test_a_pod_gets_the_name_and_the_marks_of_a_static_pod() -> None:
    (pod,) = read(WEB, ManifestOrigin(source="file", location="/m/a.yaml", node_name="node-1")).pods
    assert pod.full_name == ("default", "web-node-1")
    assert pod.metadata.annotations == {
        "kubernetes.io/config.hash": pod.uid,
        "kubernetes.io/config.source": "file",
        "kubernetes.io/config.seen": "2026-01-01T00:00:00Z",
    }
    assert len(pod.uid) == 32
    assert int(pod.uid, 16)
    assert pod.spec.node_name == "node-1"
    assert pod.status.phase == "Pending"
    assert is_static_pod(pod)
    assert not is_mirror_pod(pod)


def test_a_pod_is_filled_in_as_the_api_server_does_it() -> None:
    (pod,) = read(WEB + "    ports: [{containerPort: 80}]\n").pods
    spec = to_document(pod)["spec"]
    assert spec == {
        "containers": [
            {
                "name": "a",
                "image": "busybox",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "resources": {},
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
                "imagePullPolicy": "Always",
            }
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "nodeName": "node-1",
        "securityContext": {},
        "schedulerName": "default-scheduler",
        "tolerations": [{"operator": "Exists", "effect": "NoExecute"}],
        "enableServiceLinks": True,
    }


def test_what_is_from_a_url_is_not_taken_to_keep_the_node_alive() -> None:
    (pod,) = read(WEB, URL).pods
    assert pod.spec.tolerations is None
    assert (pod.metadata.annotations or {})["kubernetes.io/config.source"] == "http"


def test_a_toleration_for_some_time_becomes_one_for_ever() -> None:
    tolerations = "[{key: a, operator: Exists}, {operator: Exists, effect: NoExecute,"
    (pod,) = read(named("web", tolerations=f"{tolerations} tolerationSeconds: 3}}]")).pods
    assert pod.spec.tolerations == (
        Toleration(key="a", operator="Exists"),
        Toleration(operator="Exists", effect="NoExecute"),
    )


def uid(text: str, origin: ManifestOrigin = FILE) -> str:
    (pod,) = read(text, origin).pods
    return pod.uid


@pytest.mark.parametrize(
    "same",
    [
        "# a comment\n" + WEB,
        "---\n" + WEB + "...\n",
        yaml.safe_dump(yaml.safe_load(WEB), indent=8, sort_keys=True),
        yaml.safe_dump(yaml.safe_load(WEB), default_flow_style=True),
        json.dumps(yaml.safe_load(WEB), indent="\t"),
        WEB.replace("name: web", 'name: "web"') + "status: {phase: Running}\n",
        WEB.replace("name: web", "name: web\n  creationTimestamp: null"),
        "\ufeff" + WEB.replace("\n", "\r\n"),
        "apiVersion: v1\nkind: List\nitems:\n- " + WEB.replace("\n", "\n  "),
    ],
)
def test_the_same_pod_written_otherwise_has_the_same_uid(same: str) -> None:
    assert uid(same) == uid(WEB)


@pytest.mark.parametrize(
    "other",
    [
        uid(WEB.replace("busybox", "busybox:1")),
        uid(WEB.replace("name: web", "name: web\n  labels: {a: b}")),
        uid(WEB.replace("name: web", "name: web\n  namespace: kube-system")),
        uid(WEB, ManifestOrigin(source="file", location="/m/b.yaml", node_name="node-1")),
        uid(WEB, ManifestOrigin(source="file", location="/m/a.yaml", node_name="node-2")),
        uid(WEB, URL),
    ],
)
def test_another_pod_has_another_uid(other: str) -> None:
    assert other != uid(WEB)


def test_a_uid_that_the_manifest_names_is_kept_and_the_hash_tells_versions_apart() -> None:
    def marked(image: str) -> tuple[str, str]:
        text = WEB.replace("name: web", "name: web\n  uid: mine").replace("busybox", image)
        (pod,) = read(text).pods
        return pod.uid, (pod.metadata.annotations or {})["kubernetes.io/config.hash"]

    assert marked("a")[0] == marked("b")[0] == "mine"
    assert marked("a")[1] != marked("b")[1]


def test_a_broken_document_does_not_lose_the_others() -> None:
    text = "---\n".join([named("a"), "a: b: c\n", named("b"), named("c", oops="1"), named("d")])
    manifest = read(text)
    assert [pod.name for pod in manifest.pods] == ["a-node-1", "b-node-1", "d-node-1"]
    assert [(problem.document, problem.pod) for problem in manifest.problems] == [
        (2, ""),
        (4, "default/c"),
    ]


def test_lists_have_pods_in_them() -> None:
    item: dict[str, Any] = yaml.safe_load(WEB)
    bare = {key: item[key] for key in ("metadata", "spec")}
    pods = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [bare, item | {"x": 1}]}
    manifest = read(json.dumps(pods))
    assert [pod.name for pod in manifest.pods] == ["web-node-1"]
    assert [problem.message for problem in manifest.problems] == [
        'strict decoding error: unknown field "x"'
    ]
    assert read("apiVersion: v1\nkind: List\nitems: []\n").problems == ()


def value(text: str) -> Any:
    (written,) = split_documents(text)
    return read_document(written)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-01-31", "2024-01-31"),
        ("80:80", "80:80"),
        ("1e3", 1000),
        ("0644", 420),
        ("0o644", 420),
        ("0x10", 16),
        ("1_000", 1000),
        ("08", 8),
        ("-1.5", -1.5),
        ("yes", True),
        ("off", False),
        ("~", None),
        ("'1'", "1"),
        ("!!binary aGk=", "hi"),
        ("{2: a, true: b, null: c}", {"2": "a", "true": "b", "null": "c"}),
        ("a: &x {b: 1}\nc: {<<: *x, b: 2}", {"a": {"b": 1}, "c": {"b": 2}}),
        ('{"smile": "\\ud83d\\ude00", "tab":\t1}', {"smile": "😀", "tab": 1}),
        ("{a: b}", {"a": "b"}),
        ("--- {a: b}", {"a": "b"}),
        ("%YAML 1.1\n---\na: |\n  ---\n  b\n", {"a": "---\nb\n"}),
    ],
)
def test_yaml_is_read_as_go_reads_it(text: str, expected: Any) -> None:
    read_value = value(text)
    assert read_value == expected
    assert type(read_value) is type(expected)


def test_a_key_that_is_a_list_is_refused() -> None:
    with pytest.raises(DocumentError, match="unhashable"):
        value("? [a]\n: b")
