from local.templates import TemplateSettings, TemplateThroughput, table_settings

GLOBAL_TABLE = {
    "Type": "AWS::DynamoDB::GlobalTable",
    "Properties": {
        "BillingMode": "PROVISIONED",
        "TimeToLiveSpecification": {"Enabled": True, "AttributeName": "expires"},
        "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000},
        "WriteProvisionedThroughputSettings": {
            "WriteCapacityAutoScalingSettings": {
                "MinCapacity": 3,
                "MaxCapacity": 9,
                "SeedCapacity": 4,
            }
        },
        "GlobalSecondaryIndexes": [
            {"IndexName": "I", "WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": 7}}
        ],
        "Replicas": [
            {"Region": "eu-west-1", "DeletionProtectionEnabled": True},
            {
                "Region": {"Ref": "AWS::Region"},
                "ContributorInsightsSpecification": {"Enabled": True, "Mode": "THROTTLED_KEYS"},
                "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
                "ReadProvisionedThroughputSettings": {"ReadCapacityUnits": 6},
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "I",
                        "ContributorInsightsSpecification": {"Enabled": True},
                        "ReadOnDemandThroughputSettings": {"MaxReadRequestUnits": 8},
                    }
                ],
            },
        ],
    },
}


def test_a_global_tables_settings_come_from_the_table_and_its_replica_here() -> None:
    assert table_settings(GLOBAL_TABLE, "us-east-1") == TemplateSettings(
        on_demand=False,
        table=TemplateThroughput(
            read=6, write=4, warm_read=12000, warm_write=4000, insights="THROTTLED_KEYS"
        ),
        indexes={
            "I": TemplateThroughput(max_read=8, max_write=7, insights="ACCESSED_AND_THROTTLED_KEYS")
        },
        expiry_attribute="expires",
        recovery=True,
        deletion_protection=False,
    )


def test_a_tables_settings_stand_on_the_table() -> None:
    resource = {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            "BillingMode": "PAY_PER_REQUEST",
            "DeletionProtectionEnabled": True,
            "OnDemandThroughput": {"MaxReadRequestUnits": "5", "MaxWriteRequestUnits": 6},
            "GlobalSecondaryIndexes": [
                {"IndexName": "I", "ContributorInsightsSpecification": {"Enabled": False}}
            ],
        },
    }
    assert table_settings(resource, "us-east-1") == TemplateSettings(
        on_demand=True,
        table=TemplateThroughput(max_read=5, max_write=6),
        indexes={"I": TemplateThroughput()},
        deletion_protection=True,
    )


def test_values_that_are_no_literals_count_as_not_stated() -> None:
    resource = {
        "Type": "AWS::DynamoDB::Table",
        "Properties": {
            "ProvisionedThroughput": {"ReadCapacityUnits": {"Ref": "Reads"}},
            "TimeToLiveSpecification": {"Enabled": True, "AttributeName": {"Ref": "Name"}},
            "GlobalSecondaryIndexes": {"Fn::If": []},
        },
    }
    assert table_settings(resource, "us-east-1") == TemplateSettings(
        on_demand=False, table=TemplateThroughput()
    )


def test_other_resources_are_no_tables() -> None:
    assert table_settings({"Type": "AWS::SQS::Queue"}, "us-east-1") is None
