"""Pure decisions of the eviction manager, as the kubelet makes them.

- `settings`: `merge_default_eviction_hard(hard, *, merge)`, `parse_threshold_config(*, hard, soft,
  soft_grace_period, minimum_reclaim, enforce_node_allocatable)`,
  `with_containerfs_thresholds(thresholds, layout)`,
  `hard_eviction_reservation(thresholds, capacity)`
- `observations`: `make_signal_observations(node)`
- `pressure`: `update_pressure(state, config, observations, now)`, `is_reclaimed(thresholds,
  observations)`
- `ranking`: `rank_pods(signal, pods, usage, layout)`
- `storage_limits`: `storage_limit_evictions(pods, usage, layout)`
- `synchronize`: `synchronize(state, config, summary, pods, now)`, one cycle of all of these
- `admit`: `reject_under_pressure(pod, node_conditions)`

The status of an evicted pod is `workers.lifecycle.termination_status.with_eviction`.

Nothing here waits, reads a clock or logs. Tests: tests/eviction/decide.
"""
