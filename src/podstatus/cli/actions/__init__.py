"""What commands do that change something: delete pods, run a program in one, drain or end a node.

Each module carries out one command of `cli.commands`. Reading and printing objects belongs to the
modules above. Tests: tests/cli/actions; with an agent process: tests/agent/e2e/lifecycle.
"""
