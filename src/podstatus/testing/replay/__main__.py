"""Reads recorded cases from stdin, one JSON line each, and writes one answer per line.

A case that cannot be played is answered with what went wrong, and the exit status is 1.
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
    """Answer every record in order; the exit status."""
    failed = 0
    for line in filter(None, map(bytes.strip, sys.stdin.buffer)):
        record = msgspec.json.decode(line)
        try:
            answer = encode_result(await _replay(record))
        except Exception as error:  # noqa: BLE001 - the other cases deserve their answers
            print(f"cannot play a case: {error!r}", file=sys.stderr)
            answer = encode_result({"failed": repr(error)})
            failed += 1
        sys.stdout.buffer.write(answer + b"\n")
    return int(failed > 0)


async def _replay(record: dict[str, Any]) -> object:
    if "scenario" in record:
        return await replay_scenario(record["scenario"])
    if "fn" in record:
        return replay_vector(record)
    if "checkpointName" in record:
        return replay_checkpoint(record)
    raise ValueError("not a scenario, a vector or a checkpoint; see tests/conformance/FORMAT.md")


if __name__ == "__main__":
    # Recorded cases are full of refusals and failures; none of them is news.
    logging.disable()
    sys.exit(asyncio.run(main()))
