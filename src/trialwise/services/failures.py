"""The ways a service gives no usable reply, in one place because every adapter shares them.

TrialwiseError
├── ServiceError                 the engine classes the trial by its error class
│   ├── HttpFailure              no reply over HTTP; keeps the status and Retry-After
│   ├── ReportedFailure          the service itself says that it failed, and how
│   └── RecordingError           a recording cannot be written, read or matched
├── ReplyTooLarge                more output than allowed: the service's own failure
├── MalformedReply               a reply that is not in the form promised: likewise
├── RequestRefused               an endpoint that would not answer this input: likewise
└── RecordedFailure              a failure of the service's own, played back
"""

from __future__ import annotations

from trialwise.engine.ports import ServiceError
from trialwise.errors import TrialwiseError
from trialwise.model.trial import ErrorClass

__all__ = [
    "HttpFailure",
    "MalformedReply",
    "RecordedFailure",
    "RecordingError",
    "ReplyTooLarge",
    "ReportedFailure",
    "RequestRefused",
]


class HttpFailure(ServiceError):
    """No reply came over HTTP.

    Args:
        message: What happened, without anything secret in it.
        error_class: How the trial is classed.
        status: The HTTP status, where one arrived.
        retry_after_s: How long the server asked to be left alone.
    """

    def __init__(
        self,
        message: str,
        error_class: ErrorClass = ErrorClass.INFRASTRUCTURE,
        *,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message, error_class)
        self.status = status
        self.retry_after_s = retry_after_s


class ReportedFailure(ServiceError):
    """The service replied with an error of its own, at the place where the suite expects one."""


class RecordingError(ServiceError):
    """A recording cannot be written, cannot be read or holds no reply to this trial."""

    stops_run = True


class ReplyTooLarge(TrialwiseError):
    """The service said more than it may.

    Args:
        limit_bytes: The limit it passed.
        head: How the reply began.
    """

    def __init__(self, limit_bytes: int, head: str = "") -> None:
        super().__init__(
            f"the reply is larger than {limit_bytes:,} bytes and was cut off; it begins {head!r}"
        )
        self.limit_bytes = limit_bytes
        self.head = head


class MalformedReply(TrialwiseError):
    """The service replied, but not in the form it promised."""


class RequestRefused(TrialwiseError):
    """The endpoint refused this input, which is an answer of the service's own."""


class RecordedFailure(HttpFailure):
    """An exception of the service's own, played back from a recording.

    Args:
        message: What the original said.
        original_type: The original's qualified name.
        error_class: How its trial was classed.
        status: The HTTP status, where one arrived.
        retry_after_s: How long the server asked to be left alone.
    """

    def __init__(
        self,
        message: str,
        original_type: str,
        error_class: ErrorClass | str = ErrorClass.NONE,
        status: int | None = None,
        retry_after_s: float | None = None,
    ) -> None:
        known = ErrorClass(error_class)
        super().__init__(message, known, status=status, retry_after_s=retry_after_s)
        self.original_type = original_type
