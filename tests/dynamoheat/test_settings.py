from dynamoheat import Key, ProvisionedThroughput, TableSettings

DESCRIBED = {
    "TableName": "events",
    "BillingMode": "PROVISIONED",
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"},
        {"AttributeName": "sk", "KeyType": "RANGE"},
    ],
    "ProvisionedThroughput": {"ReadCapacityUnits": 7, "WriteCapacityUnits": "9"},
    "OnDemandThroughput": {"MaxWriteRequestUnits": 5},
    "WarmThroughput": {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000},
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "by-kind",
            "KeySchema": [{"AttributeName": "kind", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["a"]},
            "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 2},
        }
    ],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "by-size",
            "KeySchema": [
                {"AttributeName": "pk", "KeyType": "HASH"},
                {"AttributeName": "size", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
}


def test_a_description_becomes_settings() -> None:
    found = TableSettings.from_description(DESCRIBED)
    assert (found.name, found.key, found.provisioned) == ("events", Key("pk", "sk"), True)
    assert found.throughput == ProvisionedThroughput(
        provisioned_write=9, provisioned_read=7, warm_write=4_000, warm_read=12_000
    )
    by_kind, by_size = found.indexes
    assert (by_kind.key, by_kind.projected, by_kind.local) == (Key("kind"), frozenset({"a"}), False)
    assert by_kind.throughput == ProvisionedThroughput(provisioned_write=2, provisioned_read=1)
    assert (by_size.key, by_size.projected, by_size.local) == (Key("pk", "size"), frozenset(), True)


def test_an_on_demand_description_keeps_its_maximum_and_drops_provisioned_zeros() -> None:
    summary = {"BillingMode": None, "BillingModeSummary": {"BillingMode": "PAY_PER_REQUEST"}}
    found = TableSettings.from_description(DESCRIBED | summary)
    assert not found.provisioned
    assert found.throughput == ProvisionedThroughput(
        maximum_write=5, warm_write=4_000, warm_read=12_000
    )
    lifted = DESCRIBED | summary | {"OnDemandThroughput": {"MaxWriteRequestUnits": -1}}
    assert TableSettings.from_description(lifted).throughput.maximum_write is None


def test_a_table_without_a_billing_mode_is_provisioned_as_in_createtable() -> None:
    bare = {key: DESCRIBED[key] for key in ("TableName", "KeySchema", "ProvisionedThroughput")}
    assert TableSettings.from_description(bare).provisioned
