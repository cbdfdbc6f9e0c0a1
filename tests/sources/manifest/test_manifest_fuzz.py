"""Any file content is decoded into pods and problems."""

import json
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podstatus.kube.patch.schema import POD, Schema
from tests.support.manifests import WEB, read

RICH: dict[str, Any] = yaml.safe_load(
    WEB
    + """\
    command: [sh]
    env: [{name: A, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    ports: [{containerPort: 80, hostPort: 80}]
    resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 100m}}
    livenessProbe: {httpGet: {port: 80}, periodSeconds: 5}
    lifecycle: {preStop: {exec: {command: [a]}}}
    volumeMounts: [{name: v, mountPath: /v}]
  initContainers: [{name: i, image: i, restartPolicy: Always}]
  volumes: [{name: v, hostPath: {path: /v}}, {name: w}]
  tolerations: [{operator: Exists}]
  securityContext: {runAsUser: 1}
  resources: {limits: {cpu: 2}}
  hostAliases: [{ip: 127.0.0.1, hostnames: [a]}]
"""
)
junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.sampled_from(["", "a", "1Gi", "-1", "Always", "\ud800", "x" * 300]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "a", "limits"]), inner, max_size=2)
    ),
    max_leaves=4,
)


@st.composite
def spoiled(draw: st.DrawFn) -> Any:
    """A pod document with one random change or addition."""
    document = json.loads(json.dumps(RICH))
    value, schema = document, POD
    for _ in range(draw(st.integers(0, 6))):
        if isinstance(value, dict) and value:
            key: Any = draw(st.sampled_from(sorted(value)))
            field = schema.fields.get(key)
            schema = _below(field.schema if field else schema)
        elif isinstance(value, list) and value:
            key = draw(st.integers(0, len(value) - 1))
        else:
            break
        if isinstance(value[key], dict | list):
            value = value[key]
    if isinstance(value, dict):
        key = draw(st.sampled_from(sorted({*value, *schema.fields, "name"})))
        value[key] = draw(junk)
    elif isinstance(value, list):
        value.append(draw(junk))
    return document


def _below(schema: Schema) -> Schema:
    return Schema(type=schema.type.strip("[]{}?"))


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=300)
@given(spoiled())
def test_a_spoiled_pod_is_read_or_refused_with_a_sentence(document: Any) -> None:
    manifest = read(json.dumps(document))
    assert len(manifest.pods) + len(manifest.problems) == 1
    for problem in manifest.problems:
        assert problem.message
        assert "please report this" not in problem.message


@given(st.text(max_size=60) | st.binary(max_size=60))
def test_any_text_is_read_or_refused(text: str | bytes) -> None:
    data = text.encode(errors="surrogatepass") if isinstance(text, str) else text
    assert read(data).problems


@given(st.text(alphabet="{}[]:,-&*!|>\"#%\n \t'ab1", max_size=60))
def test_anything_like_yaml_is_read_or_refused(text: str) -> None:
    assert read(text).problems
