"""One DynamoDB out of two: what CloudFormation and SDKs declare is what the engine has."""

import json
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from local.cloud import Cloud

if TYPE_CHECKING:
    from types_boto3_cloudformation import CloudFormationClient
    from types_boto3_dynamodb import DynamoDBClient

pytestmark = pytest.mark.cloud


def text(*names: str) -> list[dict[str, str]]:
    return [{"AttributeName": name, "AttributeType": "S"} for name in names]


def keys(partition: str, sort: str) -> list[dict[str, str]]:
    return [
        {"AttributeName": partition, "KeyType": "HASH"},
        {"AttributeName": sort, "KeyType": "RANGE"},
    ]


def index(name: str, partition: str) -> dict[str, Any]:
    return {
        "IndexName": name,
        "KeySchema": keys(partition, "SK"),
        "Projection": {"ProjectionType": "ALL"},
    }


def template(**changes: Any) -> str:
    table = {
        "AttributeDefinitions": text("PK", "SK", "GPK"),
        "KeySchema": keys("PK", "SK"),
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [
            index("ByGroup", "GPK")
            | {"WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": 3}}
        ],
        "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True},
        "WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": 9},
        "Replicas": [
            {
                "Region": {"Ref": "AWS::Region"},
                "ContributorInsightsSpecification": {"Enabled": True},
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
            }
        ],
    }
    events = {"Type": "AWS::DynamoDB::GlobalTable", "Properties": table | changes}
    return json.dumps(
        {"Resources": {"Events": events}, "Outputs": {"T": {"Value": {"Ref": "Events"}}}}
    )


def deployed(cloudformation: "CloudFormationClient", stack: str, body: str) -> str:
    cloudformation.create_stack(StackName=stack, TemplateBody=body)
    cloudformation.get_waiter("stack_create_complete").wait(
        StackName=stack, WaiterConfig={"Delay": 1}
    )
    return cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["Outputs"][0]["OutputValue"]


def put(dynamodb: "DynamoDBClient", table: str, sort: str = "1") -> None:
    item = {"PK": {"S": "a"}, "SK": {"S": sort}, "GPK": {"S": "g"}, "OPK": {"S": "o"}}
    dynamodb.put_item(TableName=table, Item=item)


def found(dynamodb: "DynamoDBClient", table: str, index: str, partition: str) -> int:
    answer = dynamodb.query(
        TableName=table,
        IndexName=index,
        KeyConditionExpression=f"{partition} = :p",
        ExpressionAttributeValues={":p": {"S": partition[0].lower()}},
    )
    return answer["Count"]


def sdk_table(dynamodb: "DynamoDBClient", name: str) -> None:
    dynamodb.create_table(
        TableName=name,
        KeySchema=keys("PK", "SK"),  # type: ignore[arg-type]
        AttributeDefinitions=text("PK", "SK"),  # type: ignore[arg-type]
        BillingMode="PAY_PER_REQUEST",
    )


def code(error: pytest.ExceptionInfo[ClientError]) -> str:
    return error.value.response["Error"]["Code"]


def test_a_stacks_table_takes_items_and_answers_by_its_index(
    cloudformation: "CloudFormationClient", dynamodb: "DynamoDBClient", stack: str
) -> None:
    table = deployed(cloudformation, stack, template())
    put(dynamodb, table)
    assert found(dynamodb, table, "ByGroup", "GPK") == 1


def test_an_index_that_projects_keys_only_holds_and_costs_no_more(
    cloudformation: "CloudFormationClient", dynamodb: "DynamoDBClient", stack: str
) -> None:
    by_group = {**index("ByGroup", "GPK"), "Projection": {"ProjectionType": "KEYS_ONLY"}}
    table = deployed(cloudformation, stack, template(GlobalSecondaryIndexes=[by_group]))
    put(dynamodb, table)
    (item,) = dynamodb.query(
        TableName=table,
        IndexName="ByGroup",
        KeyConditionExpression="GPK = :p",
        ExpressionAttributeValues={":p": {"S": "g"}},
    )["Items"]
    assert item == {"PK": {"S": "a"}, "SK": {"S": "1"}, "GPK": {"S": "g"}}
    answer = dynamodb.update_item(
        TableName=table,
        Key={"PK": {"S": "a"}, "SK": {"S": "1"}},
        UpdateExpression="SET OPK = :o",
        ExpressionAttributeValues={":o": {"S": "o" * 10_000}},
        ReturnConsumedCapacity="INDEXES",
    )
    consumed = answer["ConsumedCapacity"]
    assert consumed["CapacityUnits"] == consumed["Table"]["CapacityUnits"] == 10


def test_a_stacks_table_has_the_settings_that_its_template_states(
    cloudformation: "CloudFormationClient", dynamodb: "DynamoDBClient", stack: str
) -> None:
    table = deployed(cloudformation, stack, template())
    assert dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "ENABLED",
        "AttributeName": "expires",
    }
    backups = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
    insights = dynamodb.describe_contributor_insights(TableName=table)
    assert insights["ContributorInsightsStatus"] == "ENABLED"
    described = dynamodb.describe_table(TableName=table)["Table"]
    assert described["OnDemandThroughput"]["MaxWriteRequestUnits"] == 9
    assert described["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"


def test_a_description_counts_the_items_and_names_the_index_whole(
    cloudformation: "CloudFormationClient", dynamodb: "DynamoDBClient", stack: str
) -> None:
    table = deployed(cloudformation, stack, template())
    put(dynamodb, table)
    described = dynamodb.describe_table(TableName=table)["Table"]
    assert described["ItemCount"] == 1
    (by_group,) = described["GlobalSecondaryIndexes"]
    assert by_group["IndexStatus"] == "ACTIVE"
    assert by_group["IndexArn"] == f"{described['TableArn']}/index/ByGroup"


def test_a_deleted_stacks_table_is_gone_at_once(
    cloudformation: "CloudFormationClient", dynamodb: "DynamoDBClient", stack: str
) -> None:
    table = deployed(cloudformation, stack, template())
    put(dynamodb, table)
    cloudformation.delete_stack(StackName=stack)
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
        put(dynamodb, table)
    assert table not in dynamodb.list_tables()["TableNames"]


def test_a_stack_made_anew_starts_with_an_empty_table(
    cloudformation: "CloudFormationClient", dynamodb: "DynamoDBClient", stack: str
) -> None:
    table = deployed(cloudformation, stack, template())
    put(dynamodb, table)
    cloudformation.delete_stack(StackName=stack)
    assert deployed(cloudformation, stack, template()) == table
    assert dynamodb.scan(TableName=table)["Count"] == 0


def test_an_index_that_a_stack_adds_finds_the_items_written_before(
    cloudformation: "CloudFormationClient", dynamodb: "DynamoDBClient", stack: str
) -> None:
    properties = {
        "AttributeDefinitions": text("PK", "SK"),
        "KeySchema": keys("PK", "SK"),
        "BillingMode": "PAY_PER_REQUEST",
    }

    def body(**more: Any) -> str:
        table = {"Type": "AWS::DynamoDB::Table", "Properties": properties | more}
        return json.dumps({"Resources": {"T": table}, "Outputs": {"T": {"Value": {"Ref": "T"}}}})

    table = deployed(cloudformation, stack, body())
    put(dynamodb, table)
    cloudformation.update_stack(
        StackName=stack,
        TemplateBody=body(
            AttributeDefinitions=text("PK", "SK", "OPK"),
            GlobalSecondaryIndexes=[index("ByOther", "OPK")],
        ),
    )
    cloudformation.get_waiter("stack_update_complete").wait(
        StackName=stack, WaiterConfig={"Delay": 1}
    )
    assert found(dynamodb, table, "ByOther", "OPK") == 1


def test_a_table_made_by_an_sdk_can_be_changed_and_deleted(dynamodb: "DynamoDBClient") -> None:
    sdk_table(dynamodb, "Made")
    put(dynamodb, "Made")
    dynamodb.update_table(
        TableName="Made",
        AttributeDefinitions=text("PK", "SK", "OPK"),  # type: ignore[arg-type]
        GlobalSecondaryIndexUpdates=[{"Create": index("ByOther", "OPK")}],  # type: ignore[typeddict-item]
    )
    assert found(dynamodb, "Made", "ByOther", "OPK") == 1
    dynamodb.delete_table(TableName="Made")
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
        put(dynamodb, "Made")
    sdk_table(dynamodb, "Made")
    assert dynamodb.scan(TableName="Made")["Count"] == 0
    dynamodb.delete_table(TableName="Made")


def test_deletion_protection_keeps_a_tables_items(dynamodb: "DynamoDBClient") -> None:
    sdk_table(dynamodb, "Protected")
    put(dynamodb, "Protected")
    dynamodb.update_table(TableName="Protected", DeletionProtectionEnabled=True)
    with pytest.raises(ClientError) as refused:
        dynamodb.delete_table(TableName="Protected")
    assert code(refused) == "ValidationException"
    assert dynamodb.scan(TableName="Protected")["Count"] == 1
    dynamodb.update_table(TableName="Protected", DeletionProtectionEnabled=False)
    dynamodb.delete_table(TableName="Protected")


def test_a_table_that_the_engine_refuses_is_not_declared_either(
    cloud: Cloud, dynamodb: "DynamoDBClient"
) -> None:
    unchecked = boto3.client(
        "dynamodb", config=Config(parameter_validation=False), **cloud.client_settings()
    )
    with pytest.raises(ClientError) as refused:
        unchecked.create_table(
            TableName="Refused",
            KeySchema=keys("PK", "SK"),
            AttributeDefinitions=text("PK", "SK", "GPK"),
            GlobalSecondaryIndexes=[index("I", "GPK")],  # a name too short, which only it minds
            BillingMode="PAY_PER_REQUEST",
        )
    assert code(refused) == "ValidationException"
    assert "Refused" not in dynamodb.list_tables()["TableNames"]


def test_calls_that_need_the_items_elsewhere_are_refused(dynamodb: "DynamoDBClient") -> None:
    with pytest.raises(ClientError, match="does not support CreateBackup"):
        dynamodb.create_backup(TableName="Made", BackupName="Backup")


def test_an_unknown_table_is_not_found(dynamodb: "DynamoDBClient") -> None:
    for call in (dynamodb.scan, dynamodb.describe_table):
        with pytest.raises(ClientError) as missing:
            call(TableName="Nowhere")
        assert code(missing) == "ResourceNotFoundException"


def test_batches_and_transactions_reach_the_same_table(dynamodb: "DynamoDBClient") -> None:
    sdk_table(dynamodb, "Batched")
    item = {"PK": {"S": "a"}, "SK": {"S": "1"}}
    dynamodb.batch_write_item(RequestItems={"Batched": [{"PutRequest": {"Item": item}}]})
    dynamodb.transact_write_items(TransactItems=[{"Put": {"TableName": "Batched", "Item": item}}])
    assert dynamodb.scan(TableName="Batched")["Count"] == 1
    dynamodb.delete_table(TableName="Batched")


def test_a_declaration_may_name_its_table_by_arn(cloud: Cloud, dynamodb: "DynamoDBClient") -> None:
    sdk_table(dynamodb, "Named")
    put(dynamodb, "Named")
    arn = f"arn:aws:dynamodb:{cloud.region}:000000000000:table/Named"
    assert dynamodb.describe_table(TableName=arn)["Table"]["ItemCount"] == 1
    dynamodb.delete_table(TableName=arn)
    with pytest.raises(dynamodb.exceptions.ResourceNotFoundException):
        put(dynamodb, "Named")
