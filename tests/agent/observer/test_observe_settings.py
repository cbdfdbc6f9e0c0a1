"""The settings of `podstatus observe` and their errors."""

from pathlib import Path

import pytest

from podstatus.agent.observer.settings import load_observe_settings
from podstatus.agent.settings.load import SettingsError
from podstatus.agent.settings.model import AgentSettings


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    path = tmp_path / "kubeconfig"
    path.touch()
    return str(path)


def read(flags: dict[str, str | None], **environment: str) -> AgentSettings:
    return load_observe_settings(flags, environment, {}).settings


def mistakes(flags: dict[str, str | None], **names: str) -> list[str]:
    with pytest.raises(SettingsError) as error:
        load_observe_settings(flags, {}, names)
    return list(error.value.errors)


def test_it_stays_out_of_the_way_of_an_agent(kubeconfig: str) -> None:
    settings = read({"kubeconfig": kubeconfig}, XDG_DATA_HOME="/data")
    assert settings.root_dir == Path("/data/podstatus-observer")
    assert (settings.address, settings.port) == ("127.0.0.1", 10270)
    assert not settings.authentication_token_webhook
    assert settings.authorization_mode == "Webhook"


def test_flags_come_before_variables_and_these_before_what_is_usual(kubeconfig: str) -> None:
    variables = {"PODSTATUS_PORT": "7", "PODSTATUS_ROOT_DIR": "/elsewhere"}
    settings = read({"kubeconfig": kubeconfig, "port": "8"}, **variables)
    assert (settings.port, settings.root_dir) == (8, Path("/elsewhere"))
    assert read({"kubeconfig": kubeconfig}, **variables).port == 7


def test_logs_on_a_terminal_are_short(kubeconfig: str) -> None:
    loaded = load_observe_settings({"kubeconfig": kubeconfig}, {}, {}, on_terminal=True)
    assert loaded.settings.v == 0


def test_variables_of_an_agent_do_not_matter(kubeconfig: str) -> None:
    found = load_observe_settings(
        {"kubeconfig": kubeconfig}, {"PODSTATUS_MAX_PODS": "many", "PODSTATUS_RUNTIME": "?"}, {}
    )
    assert found.warnings == ()


def test_without_a_cluster_there_is_nothing_to_observe(tmp_path: Path) -> None:
    (line,) = mistakes({})
    assert line.startswith("--kubeconfig: required; pass the kubeconfig of the cluster to observe")
    (line,) = mistakes({"kubeconfig": str(tmp_path / "none")})
    assert line == f"--kubeconfig: no kubeconfig at {tmp_path / 'none'}; pass an existing file"
    (line,) = mistakes({"kubeconfig": "~no-user/x"})
    assert line.startswith('--kubeconfig: "~no-user/x" is not a path')


def test_names_that_nothing_can_have_are_refused(kubeconfig: str) -> None:
    said = mistakes({"kubeconfig": kubeconfig}, **{"--namespace": "a/b", "--node": "x,y=z"})
    assert said == [
        '--namespace: "a/b" is not a valid name',
        '--node: "x,y=z" is not a valid name',
    ]


def test_two_observers_elect_with_the_timing_of_kubernetes(kubeconfig: str) -> None:
    alone = load_observe_settings({"kubeconfig": kubeconfig}, {}, {}).observer
    assert alone.leader_elect is False
    variables = {"PODSTATUS_LEADER_ELECT": "true", "PODSTATUS_LEADER_ELECT_RETRY_PERIOD": "1s"}
    flags: dict[str, str | None] = {
        "kubeconfig": kubeconfig,
        "leader_elect_retry_period": "500ms",
        "leader_elect_resource_name": "mine",
    }
    loaded = load_observe_settings(flags, variables, {})
    own = loaded.observer
    assert own.leader_elect
    names = own.leader_elect_resource_namespace, own.leader_elect_resource_name
    assert names == ("podstatus", "mine")
    timing = (
        own.leader_elect_lease_duration,
        own.leader_elect_renew_deadline,
        own.leader_elect_retry_period,
    )
    assert list(timing) == [15.0, 10.0, 0.5]
    assert loaded.warnings == ()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"leader_elect_lease_duration": "1.5s"}, '--leader-elect-lease-duration: "1.5s" is not a'),
        ({"leader_elect_renew_deadline": "15s"}, "--leader-elect: the lease duration of 15 s must"),
        ({"leader_elect_retry_period": "9s"}, "--leader-elect: the renew deadline of 10 s must be"),
        ({"leader_elect_resource_name": "a/b"}, '--leader-elect-resource-name: "a/b" is not a'),
        ({"leader_elect": "true", "alerts": "false"}, "--leader-elect: has no effect with --no-al"),
    ],
)
def test_an_election_that_cannot_work_is_refused(
    kubeconfig: str, flags: dict[str, str | None], message: str
) -> None:
    (line,) = mistakes({"kubeconfig": kubeconfig, **flags})
    assert line.startswith(message)
