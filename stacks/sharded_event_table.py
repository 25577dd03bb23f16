"""The three tables of one event store as a construct: events, layouts, usage."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_iam as iam
from constructs import Construct

from spillway import keys
from stacks.access import ACCESS, Access, statements
from stacks.config import EVENTS, ON_DEMAND
from stacks.environment import table_environment
from stacks.settings import Capacity, EventSettings, Projection
from stacks.tables import RetentionPolicy, event_table, layout_table, usage_table

__all__ = ["ShardedEventTable"]


class ShardedEventTable(Construct):
    """A table that takes any number of writes for one series, with what its shards need.

    Attributes:
        events: the table of events, with its index `index_name`.
        layouts: how many shards each series has. Without it events can't be found: it is kept like they are.
        usage: what writers consumed lately.
        environment: what a function that opens an `EventStore` on them is told.
    """

    index_name = keys.INDEX_NAME

    def __init__(  # noqa: PLR0913  what a table may be asked to be
        self,
        scope: Construct,
        construct_id: str,
        *,
        settings: EventSettings = EVENTS,
        capacity: Capacity = ON_DEMAND,
        projection: Projection = "ALL",
        projected: tuple[str, ...] = (),
        removal_policy: RemovalPolicy = RemovalPolicy.RETAIN,
        deletion_protection: bool = False,
        point_in_time_recovery: bool = True,
    ) -> None:
        """Build the tables; `capacity` is that of events and their index, `projected` goes with INCLUDE."""
        super().__init__(scope, construct_id)
        if (projection == "INCLUDE") != bool(projected):
            raise ValueError("`projected` goes with projection INCLUDE, and only so")
        keeping = RetentionPolicy(
            removal_policy=removal_policy,
            deletion_protection=deletion_protection,
            point_in_time_recovery=point_in_time_recovery,
        )
        self.events = event_table(
            self, keeping=keeping, capacity=capacity, projection=projection, projected=projected
        )
        self.layouts = layout_table(self, keeping=keeping)
        self.usage = usage_table(self, keeping=keeping)
        self.environment = table_environment(
            events=self.events,
            layouts=self.layouts,
            usage=self.usage,
            settings=settings,
            projection=projection,
        )

    def grant_write(self, grantee: iam.IGrantable) -> None:
        """Allow what `EventStore.write` calls, its growth of layouts included."""
        self.grant(grantee, ACCESS["ingest"])

    def grant_read(self, grantee: iam.IGrantable) -> None:
        """Allow what `EventStore.read` and `EventStore.aggregate` call."""
        self.grant(grantee, ACCESS["query"])

    def grant(self, grantee: iam.IGrantable, access: Access) -> None:
        """Allow exactly what is listed."""
        for statement in statements(
            access, events=self.events, layouts=self.layouts, usage=self.usage
        ):
            grantee.grant_principal.add_to_principal_policy(statement)
