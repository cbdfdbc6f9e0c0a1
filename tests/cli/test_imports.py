"""What commands import: the time of a command is mostly that of its imports."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from podstatus.agent.daemon.endpoints_file import AgentEndpoints
from podstatus.agent.daemon.root_dir import RootDir
from podstatus.testing.apiserver import running_api_server

EXPENSIVE = (
    "aiohttp",
    "asyncio",
    "cel_expr_python",
    "cryptography",
    "grpc",
    "prometheus_client",
    "psutil",
    "pydantic",
    "structlog",
    "yaml",
)
"""Packages that take 20 to 200 ms to import, most of them for servers."""
PROGRAM = f"""
import sys
from podstatus.cli.main import main
sys.argv[0] = "podstatus"
try:
    main()
finally:
    print([name for name in {(*EXPENSIVE, "rich")!r} if name in sys.modules], file=sys.stderr)
"""


def expensive_imports(*words: str, **environment: str) -> str:
    command = [sys.executable, "-P", "-c", PROGRAM, *words]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | environment, check=False
    )
    return done.stderr.splitlines()[-1]


@pytest.fixture(scope="module")
def root_dir(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("agent")
    with running_api_server(folder / "apiserver") as server, RootDir(folder / "root") as root:
        root.write_endpoints(
            AgentEndpoints(
                apiserver=server.url,
                agent="",
                token=server.token,
                certificate_authority=str(server.authority),
                node="n1",
                pid=os.getpid(),
            )
        )
        yield root.path


@pytest.mark.parametrize(
    "words",
    [
        "--version",
        "--help",
        "run --help",
        "doctor --help",
        "get --help",
        "describe --help",
        "timeline --help",
        "watch --help",
        "logs --help",
        "exec --help",
        "delete --help",
        "drain --help",
        "status --help",
        "stop --help",
        "down --help",
        "apiserver --help",
        "alerts --help",
        "alerts check --help",
        "alerts test --help",
    ],
)
def test_help_imports_nothing_that_only_running_needs(words: str) -> None:
    assert expensive_imports(*words.split()) == "[]"


@pytest.mark.parametrize("typed", ["ti", "run --max", "get p", "logs w"])
def test_completion_imports_nothing_expensive(typed: str, tmp_path: Path) -> None:
    words = f"podstatus {typed}"
    environment = {
        "PODSTATUS_ROOT_DIR": str(tmp_path),
        "_PODSTATUS_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    assert expensive_imports(**environment) == "[]"


@pytest.mark.parametrize(
    "words",
    ["get pods", "get nodes", "get events -A -o wide", "get pods -l app=web", "describe nodes"],
)
def test_a_query_imports_rich_but_no_http_library(words: str, root_dir: Path) -> None:
    found = expensive_imports(*words.split(), "--root-dir", str(root_dir))
    assert found == "['rich']"


@pytest.mark.parametrize("words", ["delete pod none", "delete pods --all"])
def test_a_deletion_imports_no_http_library(words: str, root_dir: Path) -> None:
    assert expensive_imports(*words.split(), "--root-dir", str(root_dir)) == "[]"


@pytest.mark.parametrize("words", ["status", "stop"])
def test_what_asks_an_agent_imports_no_event_loop(words: str, tmp_path: Path) -> None:
    assert expensive_imports(words, "--root-dir", str(tmp_path)) in ("[]", "['rich']")
