"""The scaler: what calls it, what it may do, what it is told, where its failures end; who may publish to its topics."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spillway import keys
from stacks.config import STAGES
from tests.infra.synthesis import (
    Resource,
    Synthesis,
    allowed,
    functions,
    of_type,
    synthesise,
    written,
)

SCALER = "scaler"
CLOUDWATCH = "arn:<AWS::Partition>:cloudwatch:<AWS::Region>:<AWS::AccountId>"
# By the calls that it makes; tests of its code hold the same list against them.
ALLOWED = {
    ("dynamodb:DescribeContributorInsights", "<events>"),
    ("dynamodb:DescribeTable", "<events>"),
    ("dynamodb:BatchGetItem", "<layouts>"),
    ("dynamodb:GetItem", "<layouts>"),
    ("dynamodb:UpdateItem", "<layouts>"),
    ("dynamodb:Query", f"<layouts>/index/{keys.LAYOUT_INDEX_NAME}"),
    ("dynamodb:Query", "<usage>"),
    (
        "cloudwatch:GetInsightRuleReport",
        f"{CLOUDWATCH}:insight-rule/DynamoDBContributorInsights-PKT-<events>-*",
    ),
    ("cloudwatch:DescribeAlarms", f"{CLOUDWATCH}:alarm:*"),
    ("cloudwatch:GetMetricData", "*"),
    ("sqs:GetQueueAttributes", "<AWS::SQS::Queue>"),
    ("sqs:GetQueueUrl", "<AWS::SQS::Queue>"),
    ("sqs:SendMessage", "<AWS::SQS::Queue>"),
    ("logs:CreateLogStream", "<AWS::Logs::LogGroup>"),
    ("logs:PutLogEvents", "<AWS::Logs::LogGroup>"),
}


def _one(synthesis: Synthesis, kind: str) -> Any:
    (found,) = of_type(synthesis.service, kind)
    return found["Properties"]


@pytest.fixture
def function(synthesis: Synthesis) -> Resource:
    return functions(synthesis)[SCALER]


def test_the_scaler_may_do_what_is_listed_and_change_no_table(synthesis: Synthesis) -> None:
    granted = [(action, written(synthesis, on)) for action, on in allowed(synthesis, SCALER)]
    assert set(granted) == ALLOWED
    assert len(granted) == len(set(granted))


def test_no_role_of_any_stage_may_change_a_table(synthesis: Synthesis, function: Resource) -> None:
    for template in synthesis.template_files:
        text = template.read_text()
        assert "UpdateTable" not in text
        assert "dynamodb:*" not in text
    told = function["Environment"]["Variables"]
    bounds = [told[f"SPILLWAY_MAX_{kind}_WRITE_UNITS"] for kind in ("WARM", "PROVISIONED")]
    assert bounds == ["0", "0"]


@pytest.mark.parametrize("bound", ["max_warm_write_units", "max_provisioned_write_units"])
def test_with_a_bound_the_scaler_alone_may_change_the_table_of_events(
    tmp_path: Path, bound: str
) -> None:
    stage = STAGES["dev"]
    changed: Any = {bound: 16_000}
    growth = replace(stage.growth, **changed)
    synthesis = synthesise("dev", tmp_path, stage=replace(stage, growth=growth))
    granted = {(action, written(synthesis, on)) for action, on in allowed(synthesis, SCALER)}
    assert granted == {*ALLOWED, ("dynamodb:UpdateTable", "<events>")}
    assert sum(each.read_text().count("UpdateTable") for each in synthesis.template_files) == 1


def test_the_scaler_is_told_how_to_find_its_alarms_and_what_it_may_do(
    synthesis: Synthesis, function: Resource
) -> None:
    told = function["Environment"]["Variables"]
    prefix = f"Spillway-{synthesis.stage.name}-service-Scaler-"
    assert told["SPILLWAY_ALARM_PREFIX"] == prefix
    own = {
        name: told[name]
        for name in (
            "SPILLWAY_DRY_RUN",
            "SPILLWAY_SHRINK_WINDOW_HOURS",
            "SPILLWAY_MAX_SHARDS",
            "SPILLWAY_COOLDOWN_SECONDS",
        )
    }
    assert list(own.values()) == ["false", "36", "256", "1"]
    assert "SPILLWAY_PARTITION_WCU" not in told


def test_every_alarm_of_the_scaler_has_its_prefix(synthesis: Synthesis, function: Resource) -> None:
    prefix = function["Environment"]["Variables"]["SPILLWAY_ALARM_PREFIX"]
    topic = _one(synthesis, "AWS::SNS::Subscription")["TopicArn"]
    alarms = [each["Properties"] for each in of_type(synthesis.service, "AWS::CloudWatch::Alarm")]
    told = [each["AlarmName"] for each in alarms if topic in each["AlarmActions"]]
    assert len(told) == 20
    assert all(name.startswith(prefix) for name in told)


def test_the_scaler_is_told_the_same_of_tables_and_events_as_ingest(
    synthesis: Synthesis, function: Resource
) -> None:
    ingest = functions(synthesis)["ingest"]["Environment"]["Variables"]
    told = function["Environment"]["Variables"]
    same = set(ingest) - {"POWERTOOLS_SERVICE_NAME", "SPILLWAY_GROW"}
    assert "SPILLWAY_GROW" not in told
    assert {name: told[name] for name in same} == {name: ingest[name] for name in same}


def test_a_storm_of_alarms_waits_its_turn_and_not_for_long(
    synthesis: Synthesis, function: Resource
) -> None:
    assert function["ReservedConcurrentExecutions"] == 2
    assert function["Timeout"] == 60
    invoked = _one(synthesis, "AWS::Lambda::EventInvokeConfig")
    assert written(synthesis, invoked["FunctionName"]) == "<scaler>"
    assert (invoked["MaximumRetryAttempts"], invoked["MaximumEventAgeInSeconds"]) == (2, 300)


def test_the_scaler_stands_outside_any_network(function: Resource) -> None:
    assert "VpcConfig" not in function


def test_the_scalers_topic_and_a_schedule_of_a_minute_call_it_and_nothing_else(
    synthesis: Synthesis,
) -> None:
    subscription = _one(synthesis, "AWS::SNS::Subscription")
    assert (subscription["Protocol"], written(synthesis, subscription["Endpoint"])) == (
        "lambda",
        "<scaler>",
    )
    rule = _one(synthesis, "AWS::Events::Rule")
    assert (rule["ScheduleExpression"], rule["State"]) == ("rate(1 minute)", "ENABLED")
    (target,) = rule["Targets"]
    assert written(synthesis, target["Arn"]) == "<scaler>"
    assert target["RetryPolicy"] == {"MaximumRetryAttempts": 2, "MaximumEventAgeInSeconds": 300}
    callers = {
        (permission["Principal"], written(synthesis, permission["SourceArn"]))
        for each in of_type(synthesis.service, "AWS::Lambda::Permission")
        if written(synthesis, (permission := each["Properties"])["FunctionName"]) == "<scaler>"
    }
    assert callers == {
        ("sns.amazonaws.com", "<AWS::SNS::Topic>"),
        ("events.amazonaws.com", "<AWS::Events::Rule>"),
    }


def test_events_that_fail_for_good_wait_in_an_encrypted_queue(synthesis: Synthesis) -> None:
    queue = _one(synthesis, "AWS::SQS::Queue")
    assert queue["SqsManagedSseEnabled"] is True
    assert queue["MessageRetentionPeriod"] == 4 * 24 * 3600
    (target,) = _one(synthesis, "AWS::Events::Rule")["Targets"]
    subscription = _one(synthesis, "AWS::SNS::Subscription")
    invoked = _one(synthesis, "AWS::Lambda::EventInvokeConfig")
    ends = (
        target["DeadLetterConfig"]["Arn"],
        subscription["RedrivePolicy"]["deadLetterTargetArn"],
        invoked["DestinationConfig"]["OnFailure"]["Destination"],
    )
    assert {written(synthesis, end) for end in ends} == {"<AWS::SQS::Queue>"}


OF_THIS_ACCOUNTS_ALARMS = {
    "StringEquals": {"aws:SourceAccount": "<AWS::AccountId>"},
    "ArnLike": {"aws:SourceArn": f"{CLOUDWATCH}:alarm:*"},
}


def _conditions(synthesis: Synthesis, statement: Any) -> dict[str, dict[str, str]]:
    return {
        operator: {key: written(synthesis, value) for key, value in tests.items()}
        for operator, tests in statement["Condition"].items()
    }


def test_only_this_accounts_alarms_may_publish_and_only_over_tls(synthesis: Synthesis) -> None:
    policies = [each["Properties"] for each in of_type(synthesis.service, "AWS::SNS::TopicPolicy")]
    covered = {json.dumps(topic) for policy in policies for topic in policy["Topics"]}
    topics = {
        json.dumps({"Ref": name}) for name in synthesis.service.find_resources("AWS::SNS::Topic")
    }
    assert covered == topics
    assert len(topics) == 2
    for policy in policies:
        by_effect = {each["Effect"]: each for each in policy["PolicyDocument"]["Statement"]}
        assert len(by_effect) == len(policy["PolicyDocument"]["Statement"]) == 2
        allow, deny = by_effect["Allow"], by_effect["Deny"]
        assert allow["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
        assert allow["Action"] == deny["Action"] == "sns:Publish"
        assert [allow["Resource"]] == [deny["Resource"]] == policy["Topics"]
        assert _conditions(synthesis, allow) == OF_THIS_ACCOUNTS_ALARMS
        assert deny["Principal"] == "*"
        assert deny["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}


def test_topics_are_encrypted_with_a_rotating_key_that_alarms_may_use(synthesis: Synthesis) -> None:
    (key,) = synthesis.service.find_resources("AWS::KMS::Key")
    for topic in of_type(synthesis.service, "AWS::SNS::Topic"):
        assert topic["Properties"]["KmsMasterKeyId"] == {"Fn::GetAtt": [key, "Arn"]}
    stated = _one(synthesis, "AWS::KMS::Key")
    assert stated["EnableKeyRotation"] is True
    owner, alarms = stated["KeyPolicy"]["Statement"]
    assert written(synthesis, owner["Principal"]["AWS"]).endswith("<AWS::AccountId>:root")
    assert alarms["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert alarms["Action"] == ["kms:Decrypt", "kms:GenerateDataKey*"]
    assert _conditions(synthesis, alarms) == OF_THIS_ACCOUNTS_ALARMS


def test_people_are_told_by_mail_where_the_stage_names_them(synthesis: Synthesis) -> None:
    protocols = [
        each["Properties"]["Protocol"]
        for each in of_type(synthesis.service, "AWS::SNS::Subscription")
    ]
    assert protocols == ["lambda"] + ["email"] * len(synthesis.stage.people)
