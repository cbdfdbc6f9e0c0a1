"""The history: every transition of every pod with its time, in a SQLite file.

`sqlite_store` is the file, for reading and writing; `writer` queues transitions and writes them in
a thread of its own; `status_listener` is the writer of a node, a notifier of the status manager.
What a transition is belongs in transitions. Tests: tests/observe/history.
"""
