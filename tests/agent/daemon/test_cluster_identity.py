"""A root directory belongs to one API server; another one is refused while there are pods."""

import os
from pathlib import Path

import pytest

from podstatus.agent.daemon.cluster_identity import is_different_server, merge_identity
from podstatus.agent.daemon.server_identity import ServerIdentity
from tests.support.processes.agent_process import agent, make_pod
from tests.support.processes.programs import api_server

EMBEDDED = ServerIdentity(embedded=True)


@pytest.mark.parametrize(
    ("known", "found", "differs"),
    [
        (EMBEDDED, EMBEDDED, False),
        (EMBEDDED, ServerIdentity(embedded=True, namespace="a"), False),
        (
            ServerIdentity(embedded=True, namespace="a"),
            ServerIdentity(embedded=True, namespace="b"),
            True,
        ),
        (EMBEDDED, ServerIdentity(namespace="a"), True),
        (ServerIdentity(namespace="a"), EMBEDDED, True),
        (ServerIdentity(namespace="a", service="s"), ServerIdentity(namespace="a"), False),
        (ServerIdentity(namespace="a"), ServerIdentity(namespace="b"), True),
        (ServerIdentity(service="s"), ServerIdentity(namespace="b", service="t"), True),
        # Without a common UID two servers cannot be distinguished.
        (ServerIdentity(namespace="a"), ServerIdentity(service="s"), False),
        (ServerIdentity(namespace="a", address="one"), ServerIdentity(address="two"), False),
    ],
)
def test_servers_are_compared_by_the_uids_that_both_have(
    known: ServerIdentity, found: ServerIdentity, differs: bool
) -> None:
    assert is_different_server(known, found) is differs


def test_what_a_server_does_not_say_this_time_is_not_forgotten() -> None:
    known = ServerIdentity(namespace="a", service="s", address="one")
    blank = merge_identity(ServerIdentity(address="two"), known)
    assert blank == ServerIdentity(namespace="a", service="s", address="two")
    assert is_different_server(blank, ServerIdentity(namespace="b"))
    other = ServerIdentity(namespace="b")
    assert merge_identity(other, known) == other


@pytest.mark.slow
def test_another_server_is_refused_while_there_are_pods(tmp_path: Path) -> None:
    with agent(tmp_path, "--no-samples") as own:
        cluster = own.start_ready()
        cluster.create(make_pod("stays"))
        (before,) = cluster.wait_ready("stays")
        own.stop()
        with api_server("--root-dir", str(tmp_path / "other")) as other:
            with agent(tmp_path, kubeconfig=other.kubeconfig) as stranger:
                stranger.start()
                assert stranger.wait() == 2
                assert "holds pods of another API server (the embedded one" in stranger.log()
                assert f"remove {own.root_dir / 'server.json'}" in stranger.log()
            cluster = own.start_ready()
            (after,) = cluster.wait_ready("stays")
            assert after["status"] == before["status"]
            cluster.delete("stays")
            cluster.wait_gone("stays")
            own.stop()
            with agent(tmp_path, kubeconfig=other.kubeconfig) as stranger:
                stranger.start()
                stranger.wait_serving()  # there is nothing left to lose


@pytest.mark.slow
def test_pods_outlive_the_objects_of_the_embedded_server(tmp_path: Path) -> None:
    with agent(tmp_path, "--no-samples") as own:
        cluster = own.start_ready()
        cluster.create(make_pod("stays"))
        (before,) = cluster.wait_ready("stays")
        own.stop()
        database = own.root_dir / "apiserver/objects.db"
        copy = database.read_bytes()
        os.truncate(database, 0)
        own.start()
        assert own.wait() == 1
        assert f"{database} is empty or missing" in own.log()
        # Without the marker the server begins with an empty cluster: that is not this node's.
        database.with_name("objects.db-marker").unlink()
        own.start()
        assert own.wait() == 2
        assert f"remove {own.root_dir / 'server.json'} to terminate them" in own.log()
        database.with_name("objects.db-marker").unlink()
        database.write_bytes(copy)
        cluster = own.start_ready()
        (after,) = cluster.wait_ready("stays")
        assert after["status"]["containerStatuses"] == before["status"]["containerStatuses"]
        own.stop()
