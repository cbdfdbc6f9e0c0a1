"""Read the machine:

CPU, memory, processes, disk, addresses, operating system; `usage` samples it at an interval. Never
here: what a reading means for the Node (`decide`). Tests: tests/node/machine.
"""
