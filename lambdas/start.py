"""The start of a function's process. What is imported stays, so garbage collection is off."""

import gc
import os

__all__ = ["begin_start", "finish_start"]


def begin_start() -> None:
    """Stop collecting garbage: it takes a tenth of a cold start and finds none."""
    if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
        gc.disable()


def finish_start() -> None:
    """Collect garbage again, except what exists by now. Call it last before the first request."""
    if "AWS_LAMBDA_FUNCTION_NAME" in os.environ:
        gc.freeze()
        gc.enable()
