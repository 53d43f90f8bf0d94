"""Where Spark looks for the format `riverlog`: a package by this name that holds `DefaultSource`."""
