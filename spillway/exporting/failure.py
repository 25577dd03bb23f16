"""How an export fails: naming what could not be read, and where to go on."""

from spillway.storage.port import StorageError

__all__ = ["ExportError"]


class ExportError(StorageError):
    """A shard could not be read until the time for it was up. What was given out before is good.

    Attributes:
        partition_key: the shard, as its partition key.
        cause: why: throttled, out of reach or refused.
        cursor: of an export that goes on after the last event that was given out.
    """

    def __init__(self, partition_key: str, cause: StorageError) -> None:
        super().__init__(cause.code, f"reading {partition_key}: {cause.message}")
        self.partition_key = partition_key
        self.cause = cause
        self.cursor: str | None = None
