"""The exceptions trialwise raises, in one place so that every layer can raise them.

    TrialwiseError
    ├── InvalidArgument     (also ValueError)  a value outside what a function is defined for
    └── ReferenceDataError                     a folder of reference cases that cannot be read

A design that cannot support its claim is not an exception inside the statistics: the result
carries a refusal beside an undefined cutoff, because the caller decides what a refusal means.
"""

__all__ = ["InvalidArgument", "ReferenceDataError", "TrialwiseError"]


class TrialwiseError(Exception):
    """Anything trialwise raises on purpose."""


class InvalidArgument(TrialwiseError, ValueError):
    """A value lies outside what the function is defined for.

    Args:
        argument: The parameter's name, as the caller wrote it.
        value: What was given.
        allowed: What would have been accepted, as the rest of a sentence starting "must".

    >>> raise InvalidArgument("trials", 0, "be at least 1")
    Traceback (most recent call last):
        ...
    trialwise.errors.InvalidArgument: trials must be at least 1, got 0
    """

    def __init__(self, argument: str, value: object, allowed: str) -> None:
        super().__init__(f"{argument} must {allowed}, got {value!r}")
        self.argument = argument
        self.value = value
        self.allowed = allowed

    def __reduce__(self) -> tuple[type["InvalidArgument"], tuple[str, object, str]]:
        return type(self), (self.argument, self.value, self.allowed)


class ReferenceDataError(TrialwiseError):
    """A folder of reference cases is missing, unreadable or not in the expected form."""
