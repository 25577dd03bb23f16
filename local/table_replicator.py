"""Keeps the engine's tables equal to those that the emulated AWS declares.

Declarations (CloudFormation, CreateTable, settings, tags) live in MiniStack, items in the engine. The
mirror looks from the one to the other: a table that is declared is created in the engine with the
settings of its template, a changed one changed, one that is no longer declared deleted.
"""

import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from local.definitions import Definition, definition, described, index_changes
from local.table_settings import apply_table_settings
from local.templates import TABLE_TYPES, TemplateSettings, table_settings

if TYPE_CHECKING:
    from types_boto3_cloudformation import CloudFormationClient
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["TableReplicator"]

_ADOPTED = "brought along"  # in place of an id: belongs to whichever template declares the table


class TableReplicator:
    """Copies declarations into the engine; each method may run on any thread.

    Where no stack is being changed, a method costs a few requests on the loopback address.
    """

    def __init__(
        self,
        declared: "DynamoDBClient",
        stacks: "CloudFormationClient",
        engine: "DynamoDBClient",
    ) -> None:
        """Take clients of the emulated DynamoDB, the emulated CloudFormation and the engine."""
        self._declared = declared
        self._stacks = stacks
        self._engine = engine
        self._lock = threading.Lock()
        self._mirrored: dict[str, str] = {}  # table → id of the declaration it was made from
        self._settings: dict[str, TemplateSettings] = {}
        self._applied: dict[str, TemplateSettings] = {}
        self._described: Mapping[str, Mapping[str, Any]] = {}  # never changed, only replaced

    @property
    def settings(self) -> Mapping[str, TemplateSettings]:
        """The settings of the tables that templates declare, by table."""
        return self._settings

    @property
    def described(self) -> Mapping[str, Mapping[str, Any]]:
        """Every table in the engine as DescribeTable would answer, throughput as its template states it."""
        return self._described

    def adopt(self) -> None:
        """Declare the tables that a data folder brought along, so that all calls know them."""
        with self._lock:
            for name in _names(self._engine):
                found = self._engine.describe_table(TableName=name)["Table"]
                self._declared.create_table(**definition(found).request)
                self._mirrored[name] = _ADOPTED
                self._described = {**self._described, name: described(found, None)}

    def ensure(self, name: str) -> bool:
        """Create or correct one table in the engine; False where it is not declared."""
        with self._lock:
            self._learn_settings()
            return self._ensure(name)

    def sync(self) -> bool:
        """Make every table equal to its declaration; True where no stack is changing meanwhile."""
        with self._lock:
            settled = self._learn_settings()
            declared = set(_names(self._declared))
            for name in self._mirrored.keys() - declared:
                self._forget(name)
            for name in declared:
                self._ensure(name)
            return settled

    def forget(self, name: str) -> None:
        """Delete a table from the engine."""
        with self._lock:
            self._forget(name)

    def _ensure(self, name: str) -> bool:
        try:
            declared = self._declared.describe_table(TableName=name)["Table"]
        except self._declared.exceptions.ResourceNotFoundException:
            return False
        settings = self._settings.get(name)
        if self._mirrored.get(name, declared["TableId"]) not in (declared["TableId"], _ADOPTED):
            self._forget(name)  # deleted and made anew since
        self._shape(definition(declared, settings))
        if settings is not None:
            self._apply(name, settings)
        if settings is not None or self._mirrored.get(name) != _ADOPTED:
            self._mirrored[name] = declared["TableId"]
        self._described = {**self._described, name: described(declared, settings)}
        return True

    def _apply(self, name: str, settings: TemplateSettings) -> None:
        """State in the emulated DynamoDB, once, what its CloudFormation passed over."""
        if self._applied.get(name) != settings:
            apply_table_settings(self._declared, name, settings, self._applied.get(name))
            self._applied[name] = settings

    def _shape(self, wanted: Definition) -> None:
        present = self._present(wanted.name)
        if present is not None and definition(present).keys != wanted.keys:
            self._forget(wanted.name)
            present = None
        if present is None:
            self._engine.create_table(**wanted.request)
            return
        for change in index_changes(wanted, present):
            self._engine.update_table(**change)

    def _present(self, name: str) -> Mapping[str, Any] | None:
        try:
            return self._engine.describe_table(TableName=name)["Table"]
        except self._engine.exceptions.ResourceNotFoundException:
            return None

    def _forget(self, name: str) -> None:
        self._mirrored.pop(name, None)
        self._applied.pop(name, None)
        self._described = {key: value for key, value in self._described.items() if key != name}
        try:
            self._engine.delete_table(TableName=name)
        except self._engine.exceptions.ResourceNotFoundException:
            return

    def _learn_settings(self) -> bool:
        """Read the deployed templates; True where every stack is at rest."""
        settings: dict[str, TemplateSettings] = {}
        statuses = []
        for stack in self._stacks.describe_stacks()["Stacks"]:
            statuses.append(stack["StackStatus"])
            settings.update(self._tables_of(stack["StackName"]))
        self._settings = settings
        return not any(_changing(status) for status in statuses)

    def _tables_of(self, stack: str) -> Iterator[tuple[str, TemplateSettings]]:
        try:
            template: Any = self._stacks.get_template(StackName=stack)["TemplateBody"]
            resources = self._stacks.list_stack_resources(StackName=stack)
        except ClientError:  # deleted meanwhile
            return
        if not isinstance(template, Mapping):  # YAML; CDK writes JSON
            return
        for resource in resources["StackResourceSummaries"]:
            if resource["ResourceType"] in TABLE_TYPES and "PhysicalResourceId" in resource:
                stated = template.get("Resources", {}).get(resource["LogicalResourceId"], {})
                found = table_settings(stated, self._stacks.meta.region_name)
                if found is not None:
                    yield resource["PhysicalResourceId"], found


def _changing(status: str) -> bool:
    """A stack in review has a change set that nobody has run yet."""
    return status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"


def _names(client: "DynamoDBClient") -> Iterator[str]:
    for page in client.get_paginator("list_tables").paginate():
        yield from page["TableNames"]
