"""Why a request is throttled, and how DynamoDB says so: 16 reasons, three exceptions."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

__all__ = ["Throttle", "ThrottleCause", "ThrottleReason", "reason_of"]


class ThrottleCause(StrEnum):
    """What ran out."""

    KEY_RANGE = "KeyRangeThroughput"
    PROVISIONED = "ProvisionedThroughput"
    MAXIMUM = "MaxOnDemandThroughput"
    ACCOUNT = "AccountLimit"


class ThrottleReason(StrEnum):
    """A `reason` of `ThrottlingReasons`: resource, operation, limit."""

    TABLE_READ_KEY_RANGE = "TableReadKeyRangeThroughputExceeded"
    TABLE_READ_PROVISIONED = "TableReadProvisionedThroughputExceeded"
    TABLE_READ_ACCOUNT = "TableReadAccountLimitExceeded"
    TABLE_READ_MAXIMUM = "TableReadMaxOnDemandThroughputExceeded"
    TABLE_WRITE_KEY_RANGE = "TableWriteKeyRangeThroughputExceeded"
    TABLE_WRITE_PROVISIONED = "TableWriteProvisionedThroughputExceeded"
    TABLE_WRITE_ACCOUNT = "TableWriteAccountLimitExceeded"
    TABLE_WRITE_MAXIMUM = "TableWriteMaxOnDemandThroughputExceeded"
    INDEX_READ_KEY_RANGE = "IndexReadKeyRangeThroughputExceeded"
    INDEX_READ_PROVISIONED = "IndexReadProvisionedThroughputExceeded"
    INDEX_READ_ACCOUNT = "IndexReadAccountLimitExceeded"
    INDEX_READ_MAXIMUM = "IndexReadMaxOnDemandThroughputExceeded"
    INDEX_WRITE_KEY_RANGE = "IndexWriteKeyRangeThroughputExceeded"
    INDEX_WRITE_PROVISIONED = "IndexWriteProvisionedThroughputExceeded"
    INDEX_WRITE_ACCOUNT = "IndexWriteAccountLimitExceeded"
    INDEX_WRITE_MAXIMUM = "IndexWriteMaxOnDemandThroughputExceeded"

    @property
    def metric(self) -> str:
        """The `AWS/DynamoDB` metric that counts it, such as `WriteKeyRangeThroughputThrottleEvents`."""
        return (
            self.removeprefix("Table").removeprefix("Index").removesuffix("Exceeded")
            + "ThrottleEvents"
        )


def reason_of(cause: ThrottleCause, *, index: bool, write: bool) -> ThrottleReason:
    """Return the one reason of the sixteen that fits."""
    return ThrottleReason(
        f"{'Index' if index else 'Table'}{'Write' if write else 'Read'}{cause}Exceeded"
    )


_MESSAGES: Final = {
    ThrottleCause.PROVISIONED: (
        "The level of configured provisioned throughput for the table was exceeded. Consider increasing"
        " your provisioning level with the UpdateTable API."
    ),
    ThrottleCause.KEY_RANGE: (
        "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically"
        " scaling your table or index so please try again shortly. If exceptions persist, check if you"
        " have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
        "bp-partition-key-design.html"
    ),
    ThrottleCause.MAXIMUM: (
        "Throughput exceeds the maximum OnDemandThroughput configured on table or index."
    ),
    ThrottleCause.ACCOUNT: (
        "Throughput exceeds the current throughput limit for your account. Please contact AWS Support"
        " to request a limit increase."
    ),
}
_INDEX_MESSAGE: Final = (
    "The level of configured provisioned throughput for one or more global secondary indexes of the table"
    " was exceeded. Consider increasing your provisioning level for the under-provisioned global"
    " secondary indexes with the UpdateTable API."
)


@dataclass(frozen=True, slots=True)
class Throttle:
    """A refusal: why, and which table or index was short."""

    cause: ThrottleCause
    table: str
    index: str | None
    write: bool
    provisioned: bool  # the table's billing mode, which decides the exception

    @property
    def reason(self) -> ThrottleReason:
        """The reason on the wire."""
        return reason_of(self.cause, index=self.index is not None, write=self.write)

    @property
    def resource(self) -> str:
        """The end of the resource's ARN: `table/T` or `table/T/index/I`."""
        return (
            f"table/{self.table}"
            if self.index is None
            else f"table/{self.table}/index/{self.index}"
        )

    @property
    def exception(self) -> str:
        """The exception's name: by the table's mode, and by the limit."""
        return (
            "ProvisionedThroughputExceededException" if self.provisioned else "ThrottlingException"
        )

    @property
    def cancellation(self) -> str:
        """The `Code` of a transaction's `CancellationReasons`."""
        return "ProvisionedThroughputExceeded" if self.provisioned else "ThrottlingError"

    @property
    def message(self) -> str:
        """The message that goes with the exception."""
        if not self.provisioned:
            return _MESSAGES[self.cause]
        return _MESSAGES[ThrottleCause.PROVISIONED] if self.index is None else _INDEX_MESSAGE
