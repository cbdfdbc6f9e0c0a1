"""The life of each pod on the node: admitted, kept running, ended, reclaimed."""
