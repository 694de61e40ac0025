"""Errors that are sentences."""


class PlainError(Exception):
    """What a built-in task raises: its message says everything, and where in our code it was raised says nothing."""
