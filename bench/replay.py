"""The time to replay a recorded scenario on the product's own code.

Prints the median of interleaved rounds, and the time of a plain JSON decode of the same scenarios
in the same run, so that figures from different machines can be compared.
"""

import asyncio
import gzip
import json
import logging
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from podstatus.testing.replay.answers import encode_result
from podstatus.testing.replay.scenario import replay_scenario

ROOT = Path(__file__).parents[1]
RECORDED = ROOT / "tests" / "conformance" / "traces.jsonl.gz"
RESULTS = ROOT / "bench" / "results" / "replay.json"
ROUNDS = 5


def timed(work: Callable[[], object]) -> float:
    """Return the CPU seconds of the work."""
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    """Measure, print a table and write the figures."""
    logging.disable()
    lines = gzip.decompress(RECORDED.read_bytes()).splitlines()
    scenarios = [msgspec.json.decode(line)["scenario"] for line in lines]

    async def play() -> None:
        for scenario in scenarios:
            encode_result(await replay_scenario(scenario))

    def decode() -> None:
        for line in lines:
            msgspec.json.decode(line)

    rounds = []
    for number in range(ROUNDS):
        rounds.append((timed(lambda: asyncio.run(play())), timed(decode)))
        print(f"round {number + 1} of {ROUNDS}", file=sys.stderr)
    replay, plain = (statistics.median(column) for column in zip(*rounds, strict=True))
    figures = {
        "scenarios": len(scenarios),
        "steps": sum(len(scenario["steps"]) for scenario in scenarios),
        "ms_per_trace": round(replay / len(scenarios) * 1000, 3),
        "decode_ms_per_trace": round(plain / len(scenarios) * 1000, 3),
        "ratio": round(replay / plain, 1),
    }
    for name, value in figures.items():
        print(f"{name:<22}{value:>10}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
