"""Leader election by a Lease: of several processes, one at a time leads.

    elector = LeaderElector(HttpNodeApi(client), config, clock=clock, on_started_leading=…, …)
    tasks.create_task(elector.run())
    elector.is_leading

`decide` has the rules about the Lease, `elector` reads and writes it. What a leader does never
belongs here. Upstream: client-go v0.36.4, tools/leaderelection. Tests: tests/client/leaderelection.
"""
