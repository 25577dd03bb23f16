"""Keep the engine's tables equal to those that the emulated AWS declares.

Declarations (CloudFormation, CreateTable, settings, tags) live in MiniStack, items in the engine.
Replication goes from MiniStack to the engine: a declared table is created with the settings of its
template, a changed one is changed, one that is no longer declared is deleted.
"""

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from local.table_settings import (
    TABLE_TYPES,
    TemplateSettings,
    TemplateThroughput,
    apply_table_settings,
    parse_table_settings,
)

if TYPE_CHECKING:
    from types_boto3_cloudformation import CloudFormationClient
    from types_boto3_dynamodb import DynamoDBClient

__all__ = ["TableDefinition", "TableReplicator", "index_changes", "table_definition"]

Description = Mapping[str, Any]
"""A table in a DescribeTable answer, or an index in it."""

_INDEXES: Final = "GlobalSecondaryIndexes"
_DEFAULT_UNITS: Final = 5  # of provisioned capacity
_FROM_DISK: Final = "from disk"  # instead of an id: a template may still declare the table
_NO_THROUGHPUT: Final = TemplateThroughput()


class TableReplicator:
    """Copies declarations into the engine. Each method may run on any thread.

    While no stack is changing, a method costs a few requests on the loopback address.
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
        self._replicated: dict[str, str] = {}  # table → id of its declaration
        self._settings: dict[str, TemplateSettings] = {}
        self._applied: dict[str, TemplateSettings] = {}
        self._descriptions: Mapping[str, Description] = {}  # never changed, only replaced

    @property
    def settings(self) -> Mapping[str, TemplateSettings]:
        """The settings of the tables that templates declare, by table."""
        return self._settings

    @property
    def descriptions(self) -> Mapping[str, Description]:
        """Each table of the engine as in DescribeTable, with its template's throughput."""
        return self._descriptions

    def declare_tables_on_disk(self) -> None:
        """Declare the tables that the engine's file already holds, so that all calls know them."""
        with self._lock:
            for name in _list_tables(self._engine):
                description = self._engine.describe_table(TableName=name)["Table"]
                self._declared.create_table(**table_definition(description).request)
                self._replicated[name] = _FROM_DISK
                self._describe(name, _full_description(description, None))

    def ensure(self, name: str) -> bool:
        """Create or correct one table in the engine. Return False if it is not declared."""
        with self._lock:
            self._read_templates()
            return self._ensure(name)

    def sync(self) -> bool:
        """Make every table equal to its declaration. Return whether no stack was changing."""
        with self._lock:
            has_closed_retired = self._read_templates()
            declared = set(_list_tables(self._declared))
            for name in self._replicated.keys() - declared:
                self._delete(name)
            for name in declared:
                self._ensure(name)
            return has_closed_retired

    def delete(self, name: str) -> None:
        """Delete a table from the engine."""
        with self._lock:
            self._delete(name)

    def _ensure(self, name: str) -> bool:
        try:
            declared = self._declared.describe_table(TableName=name)["Table"]
        except self._declared.exceptions.ResourceNotFoundException:
            return False
        settings = self._settings.get(name)
        if self._replicated.get(name, declared["TableId"]) not in (declared["TableId"], _FROM_DISK):
            self._delete(name)  # it was deleted and created anew
        self._create_or_change(table_definition(declared, settings))
        if settings is not None:
            self._apply_settings(name, settings)
        if settings is not None or self._replicated.get(name) != _FROM_DISK:
            self._replicated[name] = declared["TableId"]
        self._describe(name, _full_description(declared, settings))
        return True

    def _apply_settings(self, name: str, settings: TemplateSettings) -> None:
        if self._applied.get(name) != settings:
            apply_table_settings(self._declared, name, settings, self._applied.get(name))
            self._applied[name] = settings

    def _describe(self, name: str, description: Description) -> None:
        self._descriptions = {**self._descriptions, name: description}

    def _create_or_change(self, target: "TableDefinition") -> None:
        present = self._describe_in_engine(target.name)
        if present is not None and table_definition(present).keys != target.keys:
            self._delete(target.name)
            present = None
        if present is None:
            self._engine.create_table(**target.request)
            return
        for change in index_changes(target, present):
            self._engine.update_table(**change)

    def _describe_in_engine(self, name: str) -> Description | None:
        try:
            return self._engine.describe_table(TableName=name)["Table"]
        except self._engine.exceptions.ResourceNotFoundException:
            return None

    def _delete(self, name: str) -> None:
        self._replicated.pop(name, None)
        self._applied.pop(name, None)
        self._descriptions = {
            key: value for key, value in self._descriptions.items() if key != name
        }
        try:
            self._engine.delete_table(TableName=name)
        except self._engine.exceptions.ResourceNotFoundException:
            return

    def _read_templates(self) -> bool:
        """Read the settings in deployed templates. Return whether no stack is changing."""
        settings: dict[str, TemplateSettings] = {}
        statuses = []
        for stack in self._stacks.describe_stacks()["Stacks"]:
            statuses.append(stack["StackStatus"])
            settings.update(self._tables_of(stack["StackName"]))
        self._settings = settings
        return not any(_is_changing(status) for status in statuses)

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
                source = template.get("Resources", {}).get(resource["LogicalResourceId"], {})
                settings = parse_table_settings(source, self._stacks.meta.region_name)
                if settings is not None:
                    yield resource["PhysicalResourceId"], settings


def _is_changing(status: str) -> bool:
    # A stack in review has a change set that was not executed yet.
    return status.endswith("_IN_PROGRESS") and status != "REVIEW_IN_PROGRESS"


def _list_tables(client: "DynamoDBClient") -> Iterator[str]:
    for page in client.get_paginator("list_tables").paginate():
        yield from page["TableNames"]


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table as a request of CreateTable."""

    name: str
    keys: tuple[tuple[str, str], ...]  # attribute, HASH or RANGE
    request: Mapping[str, Any]


def table_definition(
    description: Description, settings: TemplateSettings | None = None
) -> TableDefinition:
    """Return a described table's definition, with the capacity of its template if it has one."""
    on_demand = settings.on_demand if settings else _is_on_demand(description)
    request = {
        "TableName": description["TableName"],
        "KeySchema": description["KeySchema"],
        "AttributeDefinitions": description["AttributeDefinitions"],
        "BillingMode": "PAY_PER_REQUEST" if on_demand else "PROVISIONED",
    }
    if not on_demand:
        request |= _provisioned(description, settings.table if settings else _NO_THROUGHPUT)
    if indexes := description.get(_INDEXES):
        request[_INDEXES] = [
            _index_identity(index)
            | ({} if on_demand else _provisioned(index, _index_throughput(settings, index)))
            for index in indexes
        ]
    if indexes := description.get("LocalSecondaryIndexes"):
        request["LocalSecondaryIndexes"] = [_index_identity(index) for index in indexes]
    keys = tuple((key["AttributeName"], key["KeyType"]) for key in description["KeySchema"])
    return TableDefinition(description["TableName"], keys, request)


def index_changes(target: TableDefinition, present: Description) -> Iterator[dict[str, Any]]:
    """Yield the UpdateTable requests, one action each, that give a table the target's indexes."""
    after = {index["IndexName"]: index for index in target.request.get(_INDEXES, ())}
    before = {index["IndexName"]: index for index in present.get(_INDEXES, ())}
    unchanged = {
        name
        for name in after.keys() & before.keys()
        if _index_identity(after[name]) == _index_identity(before[name])
    }
    for name in before:
        if name not in unchanged:
            yield _index_update(target, {"Delete": {"IndexName": name}})
    for name, index in after.items():
        if name not in unchanged:
            yield _index_update(target, {"Create": index})


def _full_description(
    description: Description, settings: TemplateSettings | None
) -> dict[str, Any]:
    """Return a description with the template's capacity, without what changes by itself."""
    request = table_definition(description, settings).request
    table = settings.table if settings else _NO_THROUGHPUT
    full = {**request, **_throughput(description, table)}
    full |= {key: description[key] for key in ("TableArn", "TableId") if key in description}
    if _INDEXES in request:
        indexes = {index["IndexName"]: index for index in description.get(_INDEXES, ())}
        full[_INDEXES] = [
            {
                **index,
                **_throughput(indexes[index["IndexName"]], _index_throughput(settings, index)),
            }
            for index in request[_INDEXES]
        ]
    return full


def _throughput(description: Description, template: TemplateThroughput) -> dict[str, Any]:
    """Return the described on-demand maximum and warm throughput, the template's on top."""
    maximum = {
        "MaxReadRequestUnits": template.max_read,
        "MaxWriteRequestUnits": template.max_write,
    }
    warm = {"ReadUnitsPerSecond": template.warm_read, "WriteUnitsPerSecond": template.warm_write}
    return {
        name: {**(description.get(name) or {}), **{k: v for k, v in units.items() if v}}
        for name, units in (("OnDemandThroughput", maximum), ("WarmThroughput", warm))
    }


def _index_throughput(settings: TemplateSettings | None, index: Description) -> TemplateThroughput:
    if settings is None:
        return _NO_THROUGHPUT
    return settings.indexes.get(index["IndexName"], _NO_THROUGHPUT)


def _index_identity(index: Description) -> dict[str, Any]:
    """Return what makes an index what it is: name, keys, projection."""
    projection = index.get("Projection") or {"ProjectionType": "ALL"}
    return {
        "IndexName": index["IndexName"],
        "KeySchema": index["KeySchema"],
        "Projection": {key: value for key, value in projection.items() if value},
    }


def _index_update(target: TableDefinition, action: dict[str, Any]) -> dict[str, Any]:
    return {
        "TableName": target.name,
        "AttributeDefinitions": target.request["AttributeDefinitions"],
        "GlobalSecondaryIndexUpdates": [action],
    }


def _is_on_demand(description: Description) -> bool:
    summary = description.get("BillingModeSummary") or {}
    return summary.get("BillingMode") == "PAY_PER_REQUEST"


def _provisioned(
    description: Description, template: TemplateThroughput
) -> dict[str, dict[str, int]]:
    described = description.get("ProvisionedThroughput") or {}
    read = template.read or int(described.get("ReadCapacityUnits") or 0) or _DEFAULT_UNITS
    write = template.write or int(described.get("WriteCapacityUnits") or 0) or _DEFAULT_UNITS
    return {"ProvisionedThroughput": {"ReadCapacityUnits": read, "WriteCapacityUnits": write}}
