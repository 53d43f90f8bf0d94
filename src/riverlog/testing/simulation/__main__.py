"""`python -m riverlog.testing.simulation` is `riverlog-sim`."""

from riverlog.testing.simulation.command import main

if __name__ == "__main__":
    main()
