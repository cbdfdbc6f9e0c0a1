"""Build the syncer that the policy selects."""

import random

from podstatus.status.store import StatusStore
from podstatus.status.sync.context import SyncContext
from podstatus.status.sync.foreign_write_reporter import ForeignWriteReporter
from podstatus.status.sync.outbox_writer import OutboxWriter
from podstatus.status.sync.parallel import ParallelSyncer
from podstatus.status.sync.sequential import SequentialSyncer
from podstatus.status.sync.state.workqueue import SyncQueue
from podstatus.status.sync.status_sender import StatusPatcher, StatusSender
from podstatus.status.sync.syncer import Syncer


def build_syncer(context: SyncContext, statuses: StatusStore, outbox: OutboxWriter) -> Syncer:
    """Return the sequential syncer (as upstream) or the parallel one, according to the policy."""
    patcher = StatusPatcher(context, statuses)
    options = context.policy.parallel
    if options is None:
        return SequentialSyncer(patcher, statuses, context)
    queue = SyncQueue(options)
    sender = StatusSender(context, patcher, statuses, queue, outbox, options)
    return ParallelSyncer(
        context,
        sender,
        statuses,
        queue,
        outbox=outbox,
        reporter=ForeignWriteReporter(context),
        jitter=random.random,
    )
