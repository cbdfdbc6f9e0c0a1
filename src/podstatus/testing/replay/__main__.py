"""Reads recorded cases from stdin, one JSON line each, and writes one answer per line."""

import asyncio
import logging
import sys

import msgspec

from podstatus.testing.replay.answers import printed
from podstatus.testing.replay.scenario import play_scenario
from podstatus.testing.replay.vectors import play_vector


async def main() -> None:
    """Answer every record in order."""
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
        record = msgspec.json.decode(line)
        if "scenario" in record:
            answer: object = await play_scenario(record["scenario"])
        elif "fn" in record:
            answer = play_vector(record)
        else:
            raise SystemExit(f"not a scenario or a vector: {line[:80]!r}; see FORMAT.md")
        sys.stdout.buffer.write(printed(answer) + b"\n")


if __name__ == "__main__":
    # Recorded cases are full of refusals and failures; none of them is news.
    logging.disable()
    asyncio.run(main())
