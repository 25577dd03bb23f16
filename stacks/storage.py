"""The stack that holds data: events, layouts, usage."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from spillway.cdk.tables import ShardedEventTable
from stacks.config import Stage

__all__ = ["StorageStack"]


class StorageStack(Stack):
    """Tables only, so that the service can be replaced without touching data."""

    def __init__(self, scope: Construct, construct_id: str, *, stage: Stage) -> None:
        """Build the tables of one stage and give out their names."""
        super().__init__(
            scope,
            construct_id,
            description=f"Spillway {stage.name}: tables",
            termination_protection=stage.deletion_protection,
        )
        self.tables = ShardedEventTable(
            self,
            "Default",  # adds nothing to the tables' logical ids
            settings=stage.events,
            capacity=stage.capacity,
            removal_policy=stage.removal_policy,
            deletion_protection=stage.deletion_protection,
            point_in_time_recovery=stage.point_in_time_recovery,
        )
        self.events = self.tables.events
        self.layouts = self.tables.layouts
        self.usage = self.tables.usage

        CfnOutput(self, "EventsTable", value=self.events.table_name)
        CfnOutput(self, "LayoutsTable", value=self.layouts.table_name)
        CfnOutput(self, "UsageTable", value=self.usage.table_name)
