"""The clients that we did not write, each behind the same few calls, so that one test can be put to all."""
