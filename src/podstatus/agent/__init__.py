"""The program around the library: settings, composition, the daemon, the cluster observer.

`settings` loads the configuration, `compose` builds the services of a node, `daemon` runs them as a
process, `observer` is the read-only variant for a whole cluster. Logic worth a unit test belongs to
a package below. Commands and their output belong to `cli`, which this package never imports. Tests:
tests/agent; tests of a whole agent process: tests/agent/e2e.
"""
