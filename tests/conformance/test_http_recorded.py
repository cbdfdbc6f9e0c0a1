"""The embedded API server against recorded exchanges with a real one, through the judge itself."""

import asyncio
import gzip
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("aiohttp", reason="the API server needs podstatus[agent]")

from podstatus.apiserver.server import ApiServer
from podstatus.apiserver.storage.store import Store
from podstatus.apiserver.strategies.by_resource import selectable_fields

HERE = Path(__file__).parent
TOKEN = "recorded"  # noqa: S105 - of a server that lives as long as the test
PARTS = 6


async def started() -> tuple[ApiServer, str]:
    """A server without TLS, and its address."""
    store = Store.open(None, selectable_fields)
    server = ApiServer(store, token=TOKEN, ssl_context=None)
    return server, f"http://127.0.0.1:{await server.start()}"


async def judge(recorded: Path) -> tuple[int, str]:
    """What the judge says of one file, about a server of its own."""
    server, address = await started()
    command = [str(HERE / "http_check.py"), "--server", address, "--token", TOKEN, str(recorded)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    told, _ = await process.communicate()
    await server.stop()
    return process.returncode or 0, told.decode()


async def test_every_recorded_exchange_agrees(tmp_path: Path) -> None:
    lines = gzip.decompress((HERE / "http.jsonl.gz").read_bytes()).splitlines(keepends=True)
    parts = [tmp_path / f"part-{number}.jsonl" for number in range(PARTS)]
    for number, part in enumerate(parts):
        part.write_bytes(b"".join(lines[number::PARTS]))

    verdicts = await asyncio.gather(*map(judge, parts))
    assert all(code == 0 for code, _ in verdicts), verdicts
    agreed = [int(told.splitlines()[-1].split(" of ")[0]) for _, told in verdicts]
    assert sum(agreed) == len(lines) == 174
