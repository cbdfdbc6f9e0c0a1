"""Log why a full sync sends a status again, and which statuses wait for a mirror pod."""

import logging

from podstatus.kube.features import FeatureGates
from podstatus.status.decide.describe import describe_difference
from podstatus.status.decide.plan import BatchPlan, Entries, observed_status, resolve_api_object
from podstatus.status.ports import PodLookup, UIDTranslations

logger = logging.getLogger(__name__)


def log_plan(
    plan: BatchPlan,
    entries: Entries,
    translations: UIDTranslations,
    pod_manager: PodLookup,
    gates: FeatureGates,
) -> None:
    """Log each reconcile with the parts that differ, at debug level."""
    if not logger.isEnabledFor(logging.DEBUG):
        return
    for sync in plan.reconciles:
        observed = observed_status(sync.uid, pod_manager)
        if observed is not None:
            difference = describe_difference(observed, sync.entry.status, gates)
            logger.debug(
                "status differs on the API server, reconciling: %s difference=%r", sync, difference
            )
    for uid, entry in entries.items():
        if resolve_api_object(uid, entry, translations) is None:
            logger.debug(
                "status is not sent, the static pod has no mirror pod: pod=%s/%s uid=%s",
                entry.namespace,
                entry.name,
                uid,
            )
