"""`python -m podstatus.agent` is the command `podstatus`."""

from podstatus.agent.cli import main

main()
