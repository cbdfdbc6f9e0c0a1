"""`python -m podstatus.cli` is the command `podstatus`."""

from podstatus.cli.main import main

main()
