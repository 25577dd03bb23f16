"""The stack that holds data: events, layouts, usage."""

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from stacks.config import Stage
from stacks.tables import event_table, layout_table, usage_table

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
        self.events = event_table(self, stage=stage)
        self.layouts = layout_table(self, stage=stage)
        self.usage = usage_table(self, stage=stage)

        CfnOutput(self, "EventsTable", value=self.events.table_name)
        CfnOutput(self, "LayoutsTable", value=self.layouts.table_name)
        CfnOutput(self, "UsageTable", value=self.usage.table_name)
