"""A real kube-apiserver against what was recorded from one, through the judge itself.

The embedded server's turn is in tests/conformance.
"""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes.api_servers import Document, RealServer

RECORDED = Path(__file__).parents[2] / "conformance"
PARTS = 6
PLAYS = 5
STALE = "resourceVersion=0"
"""A list that asks for any version may be older than the last write: what was recorded is one of
the right answers, and comes back in one of a few plays."""


def records() -> list[Document]:
    lines = gzip.decompress((RECORDED / "http.jsonl.gz").read_bytes()).splitlines()
    return [json.loads(line) for line in lines]


def judge(server: RealServer, records: list[Document], file: Path) -> tuple[list[str], str]:
    """The names of the records that differ, and what the judge says."""
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    access = server.access
    address = ["--server", access.url, f"--token={access.token}", "--ca", str(access.authority)]
    command = [sys.executable, str(RECORDED / "http_check.py"), *address, str(file)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.stdout, told.stderr
    *differ, agreed = told.stdout.splitlines()
    names = differ[0].split()[1:] if differ else []
    assert agreed == f"{len(records) - len(names)} of {len(records)} agree"
    return names, told.stderr


def test_there_are_as_many_as_the_judge_was_given() -> None:
    assert len(records()) == 174


@pytest.mark.parametrize("part", range(PARTS))
def test_recorded_exchanges_agree(real_server: RealServer, tmp_path: Path, part: int) -> None:
    left = records()[part::PARTS]
    for play in range(PLAYS):
        differ, told = judge(real_server, left, tmp_path / f"play-{play}.jsonl")
        left = [record for record in left if record["name"] in differ]
        surely = [record["name"] for record in left if STALE not in json.dumps(record["steps"])]
        assert not surely, told
        if not left:
            return
    pytest.fail(told)
