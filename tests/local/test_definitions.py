from typing import Any

from local.definitions import definition, index_changes
from local.templates import TemplateSettings, TemplateThroughput


def index(name: str, key: str = "G", **more: Any) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    } | more


def described(*indexes: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "TableName": "T",
        "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "PK", "AttributeType": "S"}],
        "GlobalSecondaryIndexes": list(indexes),
    } | more


def actions(wanted: dict[str, Any], present: dict[str, Any]) -> list[dict[str, Any]]:
    changes = index_changes(definition(wanted), present)
    return [change["GlobalSecondaryIndexUpdates"][0] for change in changes]


def test_capacity_is_the_templates_where_it_states_one() -> None:
    settings = TemplateSettings(
        on_demand=False,
        table=TemplateThroughput(write=7),
        indexes={"I": TemplateThroughput(read=8, write=9)},
    )
    request = definition(described(index("I")), settings).request
    assert request["BillingMode"] == "PROVISIONED"
    assert request["ProvisionedThroughput"] == {"ReadCapacityUnits": 5, "WriteCapacityUnits": 7}
    assert request["GlobalSecondaryIndexes"][0]["ProvisionedThroughput"] == {
        "ReadCapacityUnits": 8,
        "WriteCapacityUnits": 9,
    }


def test_capacity_is_the_descriptions_where_no_template_is() -> None:
    provisioned = {"ReadCapacityUnits": "3", "WriteCapacityUnits": 4}
    request = definition(described(ProvisionedThroughput=provisioned)).request
    assert request["ProvisionedThroughput"] == {"ReadCapacityUnits": 3, "WriteCapacityUnits": 4}


def test_an_on_demand_table_has_no_capacity() -> None:
    billed = {"BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}
    request = definition(described(index("I"), **billed)).request
    assert "ProvisionedThroughput" not in request
    assert "ProvisionedThroughput" not in request["GlobalSecondaryIndexes"][0]


def test_equal_indexes_need_no_change() -> None:
    present = index("I", IndexStatus="ACTIVE", ItemCount=3)
    assert actions(described(index("I")), described(present)) == []


def test_indexes_are_added_removed_and_replaced() -> None:
    changed = actions(
        described(index("New"), index("Other", key="H")), described(index("Old"), index("Other"))
    )
    assert [next(iter(action)) for action in changed] == ["Delete", "Delete", "Create", "Create"]
    assert [action["Delete"]["IndexName"] for action in changed[:2]] == ["Old", "Other"]
    assert [action["Create"]["IndexName"] for action in changed[2:]] == ["New", "Other"]
