"""CloudWatch's errors, as it names them."""

__all__ = ["CloudWatchError", "invalid", "missing", "not_found"]


class CloudWatchError(Exception):
    """A request that CloudWatch refuses. `code` is what SDKs show, `kind` the exception's name."""

    def __init__(self, code: str, message: str, *, kind: str = "", status: int = 400) -> None:
        """Take the code, the sentence, and where the exception is called otherwise, its name."""
        super().__init__(message)
        self.code = code
        self.kind = kind or code
        self.status = status


def invalid(message: str) -> CloudWatchError:
    """Return the error for a value that is out of range or of the wrong form."""
    return CloudWatchError("InvalidParameterValue", message, kind="InvalidParameterValueException")


def missing(name: str) -> CloudWatchError:
    """Return the error for a parameter that is not there."""
    return CloudWatchError(
        "MissingParameter",
        f"The parameter {name} is required.",
        kind="MissingRequiredParameterException",
    )


def not_found(message: str) -> CloudWatchError:
    """Return the error for something that does not exist."""
    return CloudWatchError("ResourceNotFoundException", message, status=404)
