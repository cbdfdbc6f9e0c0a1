"""Call the evaluator process from a thread, so that the event loop does not block."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from podstatus.alerts.evaluator.budgeted_evaluator import BudgetedEvaluator
from podstatus.alerts.evaluator.ports import EvaluationRequest, EvaluationResult


class EvaluatorThread:
    """A `RuleEvaluator` over an `BudgetedEvaluator`. For one event loop."""

    def __init__(self, process: BudgetedEvaluator) -> None:
        self._process = process
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="podstatus-rules")

    async def evaluate(self, requests: Sequence[EvaluationRequest]) -> EvaluationResult:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, self._process.evaluate, requests)

    def close(self) -> None:
        """Stop the process and the thread, whatever they do."""
        self._process.close()
        self._thread.shutdown(wait=False, cancel_futures=True)
