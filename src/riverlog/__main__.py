"""`python -m riverlog` is the command line."""

from riverlog.cli.main import main

main()
