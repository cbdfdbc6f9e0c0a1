"""Replay recorded cases from stdin, one JSON line each, and write one result per line.

The result of a case that cannot be replayed is its error; the exit status is then 1.
"""

import asyncio
import logging
import sys
from typing import Any

import msgspec

from podstatus.testing.replay.answers import encode_result
from podstatus.testing.replay.checkpoints import replay_checkpoint
from podstatus.testing.replay.scenario import replay_scenario
from podstatus.testing.replay.vectors import replay_vector


async def main() -> int:
    """Replay every record in order; return the exit status."""
    failed = 0
    for line in filter(None, map(bytes.strip, sys.stdin.buffer)):
        record = msgspec.json.decode(line)
        try:
            result = encode_result(await _replay(record))
        except Exception as error:  # noqa: BLE001 - the other cases are still replayed
            print(f"cannot replay a case: {error!r}", file=sys.stderr)
            result = encode_result({"failed": repr(error)})
            failed += 1
        sys.stdout.buffer.write(result + b"\n")
    return int(failed > 0)


async def _replay(record: dict[str, Any]) -> object:
    if "scenario" in record:
        return await replay_scenario(record["scenario"])
    if "fn" in record:
        return replay_vector(record)
    if "checkpointName" in record:
        return replay_checkpoint(record)
    raise ValueError("not a scenario, vector or checkpoint; see tests/conformance/FORMAT.md")


if __name__ == "__main__":
    # Recorded cases contain many expected errors; do not log them.
    logging.disable()
    sys.exit(asyncio.run(main()))
