"""Kubeconfigs that cannot be used: one line each that says what is wrong and what to do."""

import json
import os
import re
import time
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="needs podstatus[agent]")

from podstatus.client.auth import files
from podstatus.client.auth.load_config import kubeconfig_config
from podstatus.client.config_errors import KubeconfigError
from tests.client.bad_kubeconfigs import CASES, SECRET, Case
from tests.client.kubeconfigs import document, write


def complaint(path: Path) -> str:
    with pytest.raises(KubeconfigError) as caught:
        kubeconfig_config(path, environment={})
    return str(caught.value)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_one_line_says_what_is_wrong(case: Case, tmp_path: Path) -> None:
    started = time.monotonic()
    message = complaint(case.write(tmp_path))
    assert re.search(case.message, message), message
    assert str(tmp_path) in message
    assert "\n" not in message
    assert len(message) < 600
    assert SECRET not in message
    assert time.monotonic() - started < 30


def test_a_pipe_is_read_once() -> None:
    """`--kubeconfig <(decrypt …)`."""
    reader, writer = os.pipe()
    os.write(writer, json.dumps(document()).encode())
    os.close(writer)
    assert kubeconfig_config(Path(f"/dev/fd/{reader}")).server == "https://127.0.0.1:6443"
    os.close(reader)


def test_a_pipe_without_data_times_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PIPE_SECONDS", 0.05)
    os.mkfifo(tmp_path / "config")
    assert "the pipe had no data" in complaint(tmp_path / "config")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    path = write(tmp_path / "config")
    path.chmod(0)
    assert "permission denied" in complaint(path)


def test_many_names_do_not_make_a_long_line(tmp_path: Path) -> None:
    config = document() | {"current-context": "gone"}
    reference = config["contexts"][0]["context"]
    config["contexts"] = [{"name": f"context-{n}", "context": reference} for n in range(500)]
    assert complaint(write(tmp_path / "config", config)).endswith("context-106 and 490 more")


def test_a_large_kubeconfig_is_no_problem(tmp_path: Path) -> None:
    config = document()
    entry = {"certificate-authority-data": "QUJD" * 500, "server": "https://x"}
    config["clusters"] += [{"name": f"c{n}", "cluster": entry} for n in range(300)]
    started = time.monotonic()
    kubeconfig_config(write(tmp_path / "config", config))
    assert time.monotonic() - started < 30
