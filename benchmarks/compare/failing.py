"""What may stop a measurement that is no mistake of the harness: the base of its exceptions."""


class CompareError(Exception):
    """The message is for a person: what happened, and what to do about it where that is known."""
