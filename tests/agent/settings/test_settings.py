"""Settings: sources, precedence, and all errors at once."""

import platform
import pwd
from pathlib import Path
from types import UnionType
from typing import Any, get_origin, get_type_hints

import pytest

from podstatus.agent.settings.load import LoadedSettings, SettingsError, load_settings
from podstatus.agent.settings.model import BY_NAME, SETTINGS, AgentSettings
from podstatus.kube.features import FeatureGates
from podstatus.kube.objects.node import Taint
from podstatus.kube.scalars.quantity import Quantity
from podstatus.workers.shutdown.plan import ShutdownPeriod

HEAD = "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


def found(
    config: Path | None = None,
    text: str = "",
    *,
    flags: dict[str, str | None] | None = None,
    environment: dict[str, str] | None = None,
) -> LoadedSettings:
    flags = dict(flags or {})
    if config is not None:
        config.write_text(HEAD + text)
        flags["config"] = str(config)
    return load_settings(flags, environment or {})


def mistakes(*args: Any, **kwargs: Any) -> list[str]:
    with pytest.raises(SettingsError) as error:
        found(*args, **kwargs)
    return list(error.value.errors)


def by_flag(name: str, text: str) -> AgentSettings:
    return found(flags={"hostname_override": "node", name: text}).settings


VALUES: list[tuple[str, str, str, Any]] = [
    # setting, text of the flag, text in the file, value
    ("max_pods", "3", "maxPods: 3", 3),
    ("port", "0", "port: 0", 0),
    ("address", "::1", "address: '::1'", "::1"),
    ("tls_cert_file", "/c", "tlsCertFile: /c", Path("/c")),
    ("tls_private_key_file", "/k", "tlsPrivateKeyFile: /k", Path("/k")),
    (
        "client_ca_file",
        "/ca",
        "authentication: {x509: {clientCAFile: /ca}}",
        Path("/ca"),
    ),
    (
        "authentication_token_webhook",
        "true",
        "authentication: {webhook: {enabled: true}}",
        True,
    ),
    (
        "authentication_token_webhook_cache_ttl",
        "0",
        "authentication: {webhook: {cacheTTL: 0s}}",
        0.0,
    ),
    ("authorization_mode", "Webhook", "authorization: {mode: Webhook}", "Webhook"),
    (
        "authorization_webhook_cache_authorized_ttl",
        "1m",
        "authorization: {webhook: {cacheAuthorizedTTL: 1m}}",
        60.0,
    ),
    (
        "authorization_webhook_cache_unauthorized_ttl",
        "1s",
        "authorization: {webhook: {cacheUnauthorizedTTL: 1s}}",
        1.0,
    ),
    (
        "streaming_connection_idle_timeout",
        "0",
        "streamingConnectionIdleTimeout: 0s",
        0.0,
    ),
    ("healthz_port", "1234", "healthzPort: 1234", 1234),
    ("healthz_port", "0", "healthzPort: 0", None),
    ("healthz_bind_address", "127.0.0.2", "healthzBindAddress: 127.0.0.2", "127.0.0.2"),
    ("pod_manifest_path", "/m", "staticPodPath: /m", Path("/m")),
    ("manifest_url", "http://h/p", "staticPodURL: http://h/p", "http://h/p"),
    (
        "manifest_url_header",
        "a:b,a:c",
        "staticPodURLHeader: {a: [b, c]}",
        (("a", "b"), ("a", "c")),
    ),
    ("sync_frequency", "1m30s", "syncFrequency: 1m30s", 90.0),
    ("file_check_frequency", "2s", "fileCheckFrequency: 2s", 2.0),
    ("http_check_frequency", "2s", "httpCheckFrequency: 2s", 2.0),
    ("node_status_update_frequency", "1s", "nodeStatusUpdateFrequency: 1s", 1.0),
    ("node_status_report_frequency", "1h", "nodeStatusReportFrequency: 1h", 3600.0),
    ("node_lease_duration_seconds", "20", "nodeLeaseDurationSeconds: 20", 20),
    ("kube_api_qps", "5", "kubeAPIQPS: 5", 5),
    ("kube_api_burst", "6", "kubeAPIBurst: 6", 6),
    ("event_qps", "0", "eventRecordQPS: 0", 0),
    ("event_burst", "9", "eventBurst: 9", 9),
    (
        "max_container_restart_period",
        "10s",
        "crashLoopBackOff: {maxContainerRestartPeriod: 10s}",
        10.0,
    ),
    (
        "eviction_hard",
        "memory.available<50Mi,pid.available<5%",
        "evictionHard: {memory.available: 50Mi, pid.available: 5%}",
        {"memory.available": "50Mi", "pid.available": "5%"},
    ),
    (
        "merge_default_eviction_settings",
        "true",
        "mergeDefaultEvictionSettings: true",
        True,
    ),
    (
        "eviction_soft",
        "memory.available<0%",
        "evictionSoft: {memory.available: 0%}",
        {"memory.available": "0%"},
    ),
    (
        "eviction_soft_grace_period",
        "memory.available=1m30s",
        "evictionSoftGracePeriod: {memory.available: 1m30s}",
        {"memory.available": "1m30s"},
    ),
    (
        "eviction_minimum_reclaim",
        "nodefs.available=500Mi,nodefs.inodesFree=2%",
        "evictionMinimumReclaim: {nodefs.available: 500Mi, nodefs.inodesFree: 2%}",
        {"nodefs.available": "500Mi", "nodefs.inodesFree": "2%"},
    ),
    ("eviction_max_pod_grace_period", "60", "evictionMaxPodGracePeriod: 60", 60),
    (
        "local_storage_capacity_isolation",
        "false",
        "localStorageCapacityIsolation: false",
        False,
    ),
    (
        "feature_gates",
        "ContainerRestartRules=false",
        "featureGates: {ContainerRestartRules: false}",
        FeatureGates(container_restart_rules=False),
    ),
    ("register_node", "false", "registerNode: false", False),
    (
        "register_with_taints",
        "a=b:NoSchedule,c:NoExecute",
        "registerWithTaints: [{key: a, value: b, effect: NoSchedule}, {key: c, effect: NoExecute}]",
        (Taint(key="a", value="b", effect="NoSchedule"), Taint(key="c", effect="NoExecute")),
    ),
    ("register_with_taints", "", "registerWithTaints: []", ()),
    ("provider_id", "cloud://1", "providerID: cloud://1", "cloud://1"),
    ("kube_reserved", "cpu=1", "kubeReserved: {cpu: '1'}", {"cpu": Quantity.parse("1")}),
    ("system_reserved", "cpu=1", "systemReserved: {cpu: '1'}", {"cpu": Quantity.parse("1")}),
    ("pods_per_core", "7", "podsPerCore: 7", 7),
    (
        "eviction_pressure_transition_period",
        "30s",
        "evictionPressureTransitionPeriod: 30s",
        30.0,
    ),
    (
        "container_runtime_endpoint",
        "unix:///run/crio/crio.sock",
        "containerRuntimeEndpoint: unix:///run/crio/crio.sock",
        "unix:///run/crio/crio.sock",
    ),
    ("runtime_request_timeout", "1m", "runtimeRequestTimeout: 1m0s", 60.0),
    ("container_log_max_size", "2Mi", "containerLogMaxSize: 2Mi", 2 * 2**20),
    ("container_log_max_files", "3", "containerLogMaxFiles: 3", 3),
    ("shutdown_grace_period", "1m", "shutdownGracePeriod: 1m", 60.0),
    ("shutdown_grace_period_critical_pods", "5s", "shutdownGracePeriodCriticalPods: 5s", 5.0),
    (
        "shutdown_grace_period_by_pod_priority",
        "10000=5,-1=7",
        (
            "shutdownGracePeriodByPodPriority:\n"
            "- {priority: 10000, shutdownGracePeriodSeconds: 5}\n"
            "- {priority: -1, shutdownGracePeriodSeconds: 7}"
        ),
        (ShutdownPeriod(priority=-1, seconds=7), ShutdownPeriod(priority=10000, seconds=5)),
    ),
    ("v", "4", "logging: {verbosity: 4}", 4),
    ("log_format", "json", "logging: {format: json}", "json"),
]


@pytest.mark.parametrize(("name", "flag", "text", "value"), VALUES)
def test_all_sources_say_the_same(
    config: Path, name: str, flag: str, text: str, value: Any
) -> None:
    assert getattr(found(flags={name: flag}).settings, name) == value
    environment = {BY_NAME[name].variable: flag}
    assert getattr(found(environment=environment).settings, name) == value
    assert getattr(found(config, text).settings, name) == value


def test_our_own_api_server_is_not_asked_about_others(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    ours = found().settings
    others = found(flags={"kubeconfig": str(kubeconfig), "runtime": "simulated"}).settings
    assert (ours.authorization_mode, ours.authentication_token_webhook) == ("AlwaysAllow", False)
    assert (others.authorization_mode, others.authentication_token_webhook) == ("Webhook", True)


@pytest.mark.parametrize(
    ("flags", "periods"),
    [
        ({}, {0: 20, 2_000_000_000: 10}),
        ({"shutdown_grace_period": "10s"}, {0: 7, 2_000_000_000: 3}),
        ({"shutdown_grace_period": "0"}, {0: 0, 2_000_000_000: 0}),
        ({"shutdown_grace_period_critical_pods": "30s"}, {0: 0, 2_000_000_000: 30}),
        ({"shutdown_grace_period_by_pod_priority": "5=1"}, {5: 1}),
    ],
)
def test_how_long_pods_have_when_the_node_shuts_down(
    flags: dict[str, str | None], periods: dict[int, int]
) -> None:
    effective = found(flags=flags).settings.shutdown_periods
    assert {period.priority: period.seconds for period in effective} == periods


def test_critical_pods_have_a_part_of_the_whole_time() -> None:
    (line,) = mistakes(flags={"shutdown_grace_period_critical_pods": "31s"})
    assert line == (
        "--shutdown-grace-period-critical-pods: 31 s exceeds the 30 s of "
        "--shutdown-grace-period, of which it is a part"
    )


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, {"memory.available": "100Mi", "nodefs.available": "1%", "nodefs.inodesFree": "1%"}),
        ({"eviction_hard": ""}, {}),
        ({"eviction_hard": "pid.available<5%"}, {"pid.available": "5%"}),
        (
            {"eviction_hard": "nodefs.available<3%", "merge_default_eviction_settings": "true"},
            {"memory.available": "100Mi", "nodefs.available": "3%", "nodefs.inodesFree": "1%"},
        ),
    ],
)
def test_default_thresholds_are_those_of_a_personal_machine(
    flags: dict[str, str | None], expected: dict[str, str]
) -> None:
    assert found(flags=flags).settings.eviction_hard == expected


def test_default_thresholds_in_a_cluster_are_the_kubelets(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "config"
    kubeconfig.touch()
    flags: dict[str, str | None] = {"kubeconfig": str(kubeconfig), "runtime": "process"}
    assert found(flags=flags).settings.eviction_hard == {
        "memory.available": "100Mi",
        "nodefs.available": "10%",
        "nodefs.inodesFree": "5%",
        "imagefs.available": "15%",
        "imagefs.inodesFree": "5%",
    }


def test_a_soft_threshold_needs_a_grace_period() -> None:
    (line,) = mistakes(flags={"eviction_soft": "memory.available<1Gi"})
    assert line == (
        "evictionSoft[memory.available] is 1Gi, without a grace period; "
        "set evictionSoftGracePeriod[memory.available]"
    )
    flags: dict[str, str | None] = {
        "eviction_soft": "memory.available<1Gi",
        "eviction_soft_grace_period": "memory.available=30s",
    }
    assert found(flags=flags).settings.eviction_soft == {"memory.available": "1Gi"}


def test_the_table_above_has_every_field_of_a_file() -> None:
    with_field = {setting.name for setting in SETTINGS if setting.field}
    assert {name for name, *_ in VALUES} == with_field


@pytest.mark.parametrize(
    ("name", "flag", "value"),
    [
        ("node_labels", "a=b,x.io/c=", {"a": "b", "x.io/c": ""}),
        ("node_labels", "node.kubernetes.io/x=1", {"node.kubernetes.io/x": "1"}),
        ("node_capacity", "cpu=2,memory=4Gi", {"cpu": Quantity("2"), "memory": Quantity("4Gi")}),
        ("samples", "false", False),
        ("supervise", "true", True),
        ("keep_terminated_pod_volumes", "1", True),
        ("apiserver_port", "7443", 7443),
        ("root_dir", "/r", Path("/r")),
        ("runtime", "simulated", "simulated"),
        ("runtime", "process", "process"),
        ("runtime", "cri", "cri"),
        ("isolation", "none", "none"),
        ("on_stop", "drain", "drain"),
    ],
)
def test_flags_without_a_field_are_read(name: str, flag: str, value: Any) -> None:
    assert getattr(by_flag(name, flag), name) == value


def test_flags_win_over_variables_over_the_file_over_defaults(config: Path) -> None:
    text, environment = "maxPods: 3", {"PODSTATUS_MAX_PODS": "2"}
    assert (
        found(config, text, flags={"max_pods": "1"}, environment=environment).settings.max_pods == 1
    )
    assert found(config, text, environment=environment).settings.max_pods == 2
    assert found(config, text).settings.max_pods == 3
    assert found().settings.max_pods == 110


def test_a_name_is_made_lower_case_as_the_kubelet_does() -> None:
    assert by_flag("hostname_override", " Node-1 ").node_name == "node-1"


def test_an_invalid_hostname_has_to_be_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "node", lambda: "a_b")
    (line,) = mistakes()
    assert line.startswith('hostname: "a_b" is not a valid node name')
    assert line.endswith("; pass --hostname-override")
    assert by_flag("hostname_override", "node").node_name == "node"


def test_logs_on_a_terminal_are_short_unless_a_verbosity_is_given() -> None:
    assert load_settings({}, {}, on_terminal=True).settings.v == 0
    assert load_settings({"v": "4"}, {}, on_terminal=True).settings.v == 4
    assert load_settings({}, {}, on_terminal=False).settings.v == 2


def test_any_port_is_any_for_all() -> None:
    settings = by_flag("port", "0")
    assert (settings.healthz_port, settings.apiserver_port) == (0, 0)
    settings = found().settings
    assert (settings.port, settings.healthz_port, settings.apiserver_port) == (10250, 10248, 6443)


def test_the_default_root_dir_is_in_the_users_data_folder() -> None:
    environment = {"XDG_DATA_HOME": "/data"}
    assert found(environment=environment).settings.root_dir == Path("/data/podstatus")
    environment = {"XDG_DATA_HOME": "not/absolute"}
    assert found(environment=environment).settings.root_dir.parts[-3:] == (
        ".local",
        "share",
        "podstatus",
    )


def test_a_user_without_a_home_directory_can_name_the_root_dir(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def no_user(uid: int) -> None:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", no_user)
    assert by_flag("root_dir", "/r").root_dir == Path("/r")


MISTAKES: list[tuple[str, str, str]] = [
    ("max_pods", "many", '"many" is not an integer of at least 0'),
    ("max_pods", "-1", "-1 is not an integer of at least 0"),
    ("port", "65536", "65536 is not an integer from 0 to 65535"),
    ("port", "", '"" is not an integer from 0 to 65535'),
    ("address", "localhost", '"localhost" is not an IP address of this machine'),
    ("sync_frequency", "10", '"10" is not a duration of 1ms or more, such as 10s or 1m30s'),
    ("sync_frequency", "0", '"0" is not a duration of 1ms or more, such as 10s or 1m30s'),
    ("max_container_restart_period", "6m", '"6m" is not a duration from 1s to 300s'),
    ("node_lease_duration_seconds", "0", "0 is not an integer of at least 1"),
    ("kube_api_qps", "-1", "-1 is not an integer of at least 0"),
    ("runtime", "docker", '"docker" is not process, cri, simulated, or a custom class'),
    ("log_format", "xml", '"xml" is not one of text, json'),
    ("v", "11", "11 is not an integer from 0 to 10"),
    ("isolation", "docker", '"docker" is not one of auto, bubblewrap, none'),
    ("container_log_max_size", "-1", '"-1" is not a positive number of bytes'),
    ("container_log_max_size", "1m", '"1m" is not a positive number of bytes'),
    ("container_log_max_files", "1", "1 is not an integer of at least 2"),
    ("samples", "maybe", '"maybe" is not true or false'),
    ("hostname_override", "a_b", '"a_b" is not a valid node name: '),
    ("node_labels", "a", '"a" is not of the form KEY=VALUE, such as disk=ssd'),
    ("node_labels", "a b=c", '"a b=c" is not a valid label: '),
    ("node_labels", "kubernetes.io/role=x", '"kubernetes.io/role" is not a label that a node may'),
    ("node_capacity", "cpu=two", '"cpu=two" is not a resource with a quantity'),
    ("node_capacity", "cpu=-1", '"cpu=-1" is not a resource with a quantity'),
    ("register_with_taints", "a=b", '"a=b" is not a taint key=value:Effect'),
    ("register_with_taints", "a=b:Never", '"a=b:Never" is not a taint key=value:Effect'),
    ("register_with_taints", "a:NoExecute,a:NoExecute", '"a:NoExecute" is not unique'),
    (
        "eviction_hard",
        "memory.available=5%",
        '"memory.available=5%" is not of the form SIGNAL<AMOUNT, such as memory.available<5%',
    ),
    (
        "eviction_soft_grace_period",
        "memory.available<1m",
        '"memory.available<1m" is not of the form SIGNAL=DURATION, such as memory.available=1m30s',
    ),
    ("eviction_hard", "cpu<1", '"cpu" is not one of memory.available, '),
    ("eviction_hard", "pid.available<101%", '"101%" is not a quantity or percentage'),
    (
        "feature_gates",
        "Nope=true",
        '"Nope" is not a feature gate of Kubernetes v1.36',
    ),
    (
        "feature_gates",
        "SidecarContainers=false",
        '"SidecarContainers=false" is not SidecarContainers=true: the gate is locked',
    ),
    (
        "feature_gates",
        "ContainerRestartRules=2",
        '"ContainerRestartRules=2" is not a feature gate with',
    ),
    ("manifest_url", "ftp://me:secret@h/", "the value (not shown) is not a URL with"),
    ("manifest_url_header", "a b:secret", "the value (not shown) is not a header name"),
    ("root_dir", "", '"" is not a path'),
    ("root_dir", "~no-user/x", '"~no-user/x" is not a path: this user has no home directory'),
    ("config", "~no-user/x", '"~no-user/x" is not a path: this user has no home directory'),
    ("on_stop", "now", '"now" is not one of auto, keep, drain'),
    ("shutdown_grace_period", "-1s", '"-1s" is not a duration in whole seconds'),
    ("shutdown_grace_period", "1500ms", '"1500ms" is not a duration in whole seconds'),
    ("shutdown_grace_period_by_pod_priority", "0:20", '"0:20" is not a priority and seconds'),
    ("shutdown_grace_period_by_pod_priority", "1=2,1=3", "1 is not unique"),
    ("shutdown_grace_period_by_pod_priority", "2147483648=1", "2147483648 is not a priority from"),
]


@pytest.mark.parametrize(("name", "text", "message"), MISTAKES)
def test_an_invalid_value_is_reported_with_its_origin(name: str, text: str, message: str) -> None:
    (line,) = mistakes(flags={name: text})
    assert line.startswith(f"{BY_NAME[name].option}: {message}")
    if text and not BY_NAME[name].value_type.allow_empty:
        (line,) = mistakes(environment={BY_NAME[name].variable: text})
        assert line.startswith(f"{BY_NAME[name].variable}: {message}")


def test_all_errors_are_reported_at_once_each_with_its_line(config: Path) -> None:
    text = (
        "maxPods: many\nsyncFrequency: 10\nevictionHard: {cpu: 1, pid.available: x}\nmaxpods: 1\n"
    )
    errors = mistakes(
        config,
        text,
        flags={
            "port": "x",
            "node_labels": "a b=c,d",
            "shutdown_grace_period_by_pod_priority": "x,0=20,y",
        },
        environment={"PODSTATUS_MAX_PODS": "-1"},
    )
    places = sorted(line.split(": ")[0] for line in errors)
    assert places == sorted(
        [
            f"{config}:3",
            f"{config}:4",
            f"{config}:5",
            f"{config}:5",
            f"{config}:6",
            "--port",
            "--node-labels",
            "--node-labels",
            "--shutdown-grace-period-by-pod-priority",
            "--shutdown-grace-period-by-pod-priority",
            "PODSTATUS_MAX_PODS",
        ]
    )


FILES: list[tuple[str, str]] = [
    ("maxpods: 1", ":3: maxpods: no such field in a KubeletConfiguration; did you mean maxPods?"),
    (
        "rootDir: /x",
        ":3: rootDir: no such field in a KubeletConfiguration; use the flag --root-dir",
    ),
    (
        "podManifestPath: /x",
        ":3: podManifestPath: no such field in a KubeletConfiguration; did you",
    ),
    ("quux: 1", ":3: quux: no such field in a KubeletConfiguration"),
    (
        "logging: {verbosty: 1}",
        ":3: logging.verbosty: no such field in a KubeletConfiguration; did",
    ),
    ("logging: {a.b: 1}", ":3: logging.a.b: no such field in a KubeletConfiguration"),
    ("a.b: 1", ":3: a.b: no such field in a KubeletConfiguration"),
    ("logging: 3", ":3: logging: 3 is not a map"),
    ("maxPods: 1\nmaxPods: 2", ":4: maxPods: duplicate field; remove one of them"),
    (
        "shutdownGracePeriodByPodPriority: {0: 20}",
        ":3: shutdownGracePeriodByPodPriority: {0: 20} is not a list of maps with the",
    ),
    (
        "shutdownGracePeriodByPodPriority: [{priority: 0}]",
        ":3: shutdownGracePeriodByPodPriority: {'priority': 0} is not a list of maps with",
    ),
    ("maxPods: '1'", ':3: maxPods: "1" is not an integer of at least 0'),
    ("maxPods: true", ":3: maxPods: True is not an integer of at least 0"),
    ("syncFrequency: 10", ":3: syncFrequency: 10 is not a duration"),
    ("registerNode: 'yes'", ':3: registerNode: "yes" is not true or false'),
    ("registerWithTaints: a:NoExecute", ':3: registerWithTaints: "a:NoExecute" is not a list of'),
    ("registerWithTaints: [{kee: a}]", ":3: registerWithTaints: {'kee': 'a'} is not a taint with"),
    ("featureGates: [a]", ":3: featureGates: ['a'] is not a map"),
    ("evictionHard: {pid.available: 5}", ":3: evictionHard: 5 is not a quantity"),
    ("kind: Pod", ":3: kind: duplicate field"),
    ("a: [", ":4: not YAML: "),
    ("--- \na: 1", ":3: not YAML: "),
    ("maxPods: !!int ''", ": not YAML: a value does not match its tag"),
    ("registerNode: !!bool maybe", ": not YAML: a value does not match its tag"),
]


@pytest.mark.parametrize(("text", "message"), FILES)
def test_an_error_in_a_file_is_reported_with_its_line(
    config: Path, text: str, message: str
) -> None:
    lines = mistakes(config, f"{text}\n")
    assert any(line.startswith(f"{config}{message}") for line in lines), lines


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ": the file is empty; expected a KubeletConfiguration"),
        ("- 1", ": the file is not a map; expected a KubeletConfiguration"),
        ("maxPods: 1", ": kind is missing; expected KubeletConfiguration"),
        ("kind: Pod", ':1: kind: "Pod" is not KubeletConfiguration'),
    ],
)
def test_a_file_that_is_something_else_is_refused(config: Path, content: str, message: str) -> None:
    config.write_text(content)
    assert f"{config}{message}" in mistakes(flags={"config": str(config)})


def test_a_file_may_be_json(config: Path) -> None:
    config.write_text(
        '{"kind": "KubeletConfiguration", "apiVersion": "kubelet.config.k8s.io/v1beta1",'
        ' "maxPods": 7, "syncFrequency": null}'
    )
    settings = found(flags={"config": str(config)}).settings
    assert (settings.max_pods, settings.sync_frequency) == (7, 60.0)


def test_a_missing_file_is_reported(tmp_path: Path) -> None:
    missing = tmp_path / "none"
    message = f"--config: cannot read {missing}: no such file or directory"
    assert mistakes(flags={"config": str(missing)}) == [message]


def test_fields_of_the_kubelet_that_we_do_not_honour_are_noted(config: Path) -> None:
    gates = found(config, "featureGates: {WatchListClient: true, ContainerRestartRules: true}")
    assert gates.warnings == ("feature gates without effect in podstatus: WatchListClient",)
    notes = found(config, "cgroupDriver: systemd\nlogging: {vmodule: []}\n").warnings
    reason = "ignored; podstatus does not support this field"
    assert notes == (
        f"{config}:3: cgroupDriver: {reason}",
        f"{config}:4: logging.vmodule: {reason}",
    )


def test_a_variable_that_is_no_setting_is_noted() -> None:
    notes = found(environment={"PODSTATUS_MAXPODS": "1", "PODSTATUS_RESTARTED": "x"}).warnings
    assert notes == (
        "PODSTATUS_MAXPODS: ignored, no such setting; did you mean PODSTATUS_MAX_PODS?",
    )


def test_variables_of_a_service_with_our_name_do_no_harm() -> None:
    environment = {
        "PODSTATUS_PORT": "tcp://10.0.0.1:80",
        "PODSTATUS_PORT_80_TCP": "tcp://10.0.0.1:80",
        "PODSTATUS_SERVICE_HOST": "10.0.0.1",
    }
    assert found(environment=environment).settings.port == 10250
    assert found(environment=environment).warnings == ()


def test_an_empty_variable_says_nothing_unless_that_means_something() -> None:
    environment = {"PODSTATUS_MAX_PODS": "", "PODSTATUS_EVICTION_HARD": ""}
    settings = found(environment=environment).settings
    assert (settings.max_pods, settings.eviction_hard) == (110, {})


IN_CLUSTER = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}


def test_on_a_cluster_that_is_not_our_own_the_runtime_has_to_be_named(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    (line,) = mistakes(flags={"kubeconfig": str(kubeconfig)})
    assert line.startswith("--runtime: required with --kubeconfig")
    (line,) = mistakes(environment=IN_CLUSTER)
    assert line.startswith("--runtime: required in a pod of a cluster")
    assert "--no-in-cluster" in line


def test_in_a_pod_of_a_cluster_the_default_is_that_cluster() -> None:
    settings = found(flags={"runtime": "simulated"}, environment=IN_CLUSTER).settings
    assert settings.in_cluster
    assert not settings.embedded
    settings = found(flags={"in_cluster": "false"}, environment=IN_CLUSTER).settings
    assert settings.embedded


def test_a_kubeconfig_comes_before_the_cluster_of_the_pod(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.touch()
    flags: dict[str, str | None] = {"kubeconfig": str(kubeconfig), "runtime": "simulated"}
    assert not found(flags=flags, environment=IN_CLUSTER).settings.in_cluster


def test_process_nodes_of_external_clusters_are_tainted_by_default() -> None:
    def taints(**flags: str | None) -> list[str]:
        settings = found(flags=flags, environment=IN_CLUSTER).settings
        return [f"{taint.key}:{taint.effect}" for taint in settings.register_with_taints]

    assert taints(runtime="process") == ["podstatus.dev/process:NoExecute"]
    assert taints(runtime="simulated") == []
    assert taints(in_cluster="false") == []
    assert taints(runtime="process", register_with_taints="") == []
    assert taints(runtime="process", register_with_taints="a:NoSchedule") == ["a:NoSchedule"]


def test_impossible_servers_are_reported(tmp_path: Path) -> None:
    flags: dict[str, str | None] = {
        "kubeconfig": str(tmp_path / "none"),
        "in_cluster": "true",
        "runtime": "simulated",
    }
    first, second, third = mistakes(flags=flags)
    assert first.startswith(
        f"--kubeconfig: no kubeconfig at {tmp_path}/none; pass an existing file"
    )
    assert second.startswith("--in-cluster: cannot be combined with --kubeconfig")
    assert third.startswith("--in-cluster: not running in a pod")


def test_two_listeners_on_one_port_are_reported() -> None:
    errors = mistakes(flags={"port": "9000", "apiserver_port": "9000"})
    assert errors == ["--apiserver-port: 9000 is already used by --port"]


def test_headers_are_not_shown() -> None:
    settings = by_flag("manifest_url_header", "Authorization:Bearer abc")
    assert "abc" not in repr(settings)


def test_every_default_has_the_type_of_its_field() -> None:
    settings = found().settings
    for name, hint in get_type_hints(AgentSettings).items():
        kind = hint if isinstance(hint, UnionType) else get_origin(hint) or hint
        assert isinstance(getattr(settings, name), kind), name


def test_no_field_of_a_file_is_used_twice() -> None:
    fields = [setting.field for setting in SETTINGS if setting.field]
    assert len(fields) == len(set(fields))
