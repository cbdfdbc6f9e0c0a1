"""Exported settings can be read again, and contain no secrets."""

import json

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from podstatus.agent.settings.export import about_agent, export_flags, kubelet_configuration
from podstatus.agent.settings.load import load_settings
from podstatus.agent.settings.model import BY_NAME, SETTINGS, AgentSettings
from podstatus.agent.settings.schema.parse_kubelet_config import parse_config
from podstatus.kube.scalars.duration import format_duration, parse_duration
from podstatus.web.kubelet.zpages import configz

SECRET = "hunter2"  # noqa: S105 - of a test
GIVEN = {
    "root-dir": "/tmp/node",  # noqa: S108 - nothing is written
    "hostname-override": "node-1",
    "runtime": "simulated",
    "manifest-url": f"https://user:{SECRET}@example.com/pods",
    "manifest-url-header": f"Authorization: {SECRET}",
    "register-with-taints": "a=b:NoSchedule",
    "node-labels": "x=y",
    "kube-reserved": "cpu=100m,memory=1Gi",
    "eviction-hard": "memory.available<100Mi",
    "sync-frequency": "1m30s",
    "container-log-max-size": "10Mi",
    "feature-gates": "ContainerRestartRules=false",
    "shutdown-grace-period-by-pod-priority": "0=20,1000=10",
    "max-pods": "42",
}


def settings() -> AgentSettings:
    given = {setting.name: GIVEN[setting.flag] for setting in SETTINGS if setting.flag in GIVEN}
    return load_settings(given, {}).settings


def test_the_configuration_can_be_read_again_and_means_the_same() -> None:
    document = kubelet_configuration(settings())
    read = parse_config(yaml.safe_dump(json.loads(json.dumps(document))), "configz")
    assert (read.errors, read.warnings) == ((), ())
    for name, found in read.values.items():
        value = BY_NAME[name].value_type.parse_document(found.value)
        assert value == getattr(settings(), name), name


def test_the_configuration_has_the_kubelets_names() -> None:
    document = kubelet_configuration(settings())
    assert document["kind"] == "KubeletConfiguration"
    assert document["apiVersion"] == "kubelet.config.k8s.io/v1beta1"
    assert document["maxPods"] == 42
    assert document["syncFrequency"] == "1m30s"
    assert document["registerWithTaints"] == [{"key": "a", "value": "b", "effect": "NoSchedule"}]
    assert document["kubeReserved"] == {"cpu": "100m", "memory": "1Gi"}
    assert document["containerLogMaxSize"] == str(10 * 2**20)
    assert document["featureGates"]["ContainerRestartRules"] is False
    assert document["authorization"]["mode"] == "AlwaysAllow"
    assert document["shutdownGracePeriodByPodPriority"][0] == {
        "priority": 0,
        "shutdownGracePeriodSeconds": 20,
    }


def test_flags_can_be_given_again() -> None:
    shown = export_flags(settings())
    assert set(shown) == {setting.flag for setting in SETTINGS}
    for setting in SETTINGS:
        if setting.secret or not shown[setting.flag]:
            continue
        value = setting.value_type.parse_text(shown[setting.flag])
        assert value == getattr(settings(), setting.name), setting.flag


def test_no_secret_is_shown() -> None:
    about = about_agent(settings(), 0)
    assert about.flags["manifest-url"] == "CLASSIFIED"
    assert about.flags["manifest-url-header"] == "CLASSIFIED"
    exported = configz(about).decode() + repr(msgspec.to_builtins(about))
    assert SECRET not in exported
    assert "staticPodURL" not in about.configuration


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0s"),
        (0.1, "100ms"),
        (1.5, "1.5s"),
        (60, "1m0s"),
        (90, "1m30s"),
        (14400, "4h0m0s"),
        (3661.25, "1h1m1.25s"),
        (0.0000015, "1.5µs"),
        (1e-9, "1ns"),
        (-90, "-1m30s"),
    ],
)
def test_durations_are_printed_as_go_does(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@given(st.integers(-(10**18), 10**18))
def test_a_duration_is_read_as_it_was_printed(nanos: int) -> None:
    assert parse_duration(format_duration(nanos / 1e9)) == pytest.approx(nanos / 1e9, abs=1e-9)
