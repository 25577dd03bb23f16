"""The scaler as a construct: alarms that see heat, and the function that grows layouts by them."""

from collections.abc import Iterable
from dataclasses import replace

from aws_cdk import Acknowledgment, Duration, Stack, Validations
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_lambda_destinations as destinations
from aws_cdk import aws_sqs as sqs
from aws_cdk.aws_sns_subscriptions import LambdaSubscription
from constructs import Construct

from spillway.cdk.access import ACCESS, INSIGHT_RULES, RAISES_CAPACITY
from spillway.cdk.alarms import (
    AlarmTopics,
    Audience,
    add_alarms,
    failed_event_alarms,
    function_alarms,
    throttle_alarms,
)
from spillway.cdk.environment import function_environment, growth_environment, scaler_environment
from spillway.cdk.functions import ServiceFunction
from spillway.cdk.settings import (
    ALARMS,
    FUNCTIONS,
    GROWTH,
    SCALER,
    AlarmSettings,
    FunctionSettings,
    GrowthSettings,
    ScalerSettings,
)
from spillway.cdk.tables import ShardedEventTable

__all__ = ["ShardScaler"]


class ShardScaler(Construct):
    """Grow layouts that throttle, shrink idle ones, and notify people of what it can't relieve.

    Alarms call the function by SNS when throttling begins, a schedule while it lasts. The function
    stands outside any network.

    Attributes:
        function: the scaler.
        topics: one for each `Audience`; further alarms may publish to them.
        failed: the queue of events whose retries all failed.
        alarms: the alarms on tables and on the scaler itself.
    """

    def __init__(  # noqa: PLR0913  each has a default but the first two
        self,
        scope: Construct,
        construct_id: str,
        *,
        tables: ShardedEventTable,
        code: lambda_.Code,
        people: Iterable[str] = (),
        growth: GrowthSettings = GROWTH,
        alarms: AlarmSettings = ALARMS,
        scaler: ScalerSettings = SCALER,
        functions: FunctionSettings = FUNCTIONS,
    ) -> None:
        """Build it for these tables; `code` is the bundle, `people` are e-mail addresses."""
        super().__init__(scope, construct_id)
        self._prefix = _prefix(self)
        self.topics = AlarmTopics(self, "Topics", people=people).topics
        self.failed = _failed_events(self, scaler)
        service_function = ServiceFunction(
            self,
            "scaler",
            settings=replace(functions, timeout_seconds=scaler.timeout_seconds),
            code=code,
            environment={
                **tables.environment,
                **function_environment(functions),
                **growth_environment(growth),
                **scaler_environment(growth, alarm_prefix=self._prefix),
            },
            concurrency=scaler.concurrency,
        )
        self.function = service_function.function
        _allow(service_function, tables, growth)
        self._trigger(scaler)
        self.alarms = add_alarms(
            self,
            [
                *throttle_alarms(tables, alarms),
                *function_alarms("Scaler", self.function, alarms, throttles=False),
                *failed_event_alarms(self.failed, alarms),
            ],
            prefix=self._prefix,
            topics=self.topics,
        )

    def _trigger(self, settings: ScalerSettings) -> None:
        """Let alarms and the schedule call the function; events that keep failing are queued."""
        age = Duration.seconds(settings.event_age_seconds)
        self.function.configure_async_invoke(
            on_failure=destinations.SqsDestination(self.failed),
            retry_attempts=settings.retries,
            max_event_age=age,
        )
        self.topics[Audience.SCALER].add_subscription(
            LambdaSubscription(self.function, dead_letter_queue=self.failed)
        )
        target = targets.LambdaFunction(
            self.function,
            dead_letter_queue=self.failed,
            retry_attempts=settings.retries,
            max_event_age=age,
        )
        events.Rule(
            self,
            "Schedule",
            description="Alarms fire once; this goes on while they last, and shrinks what is idle",
            schedule=events.Schedule.rate(Duration.minutes(settings.every_minutes)),
            targets=[target],
        )


def _prefix(construct: Construct) -> str:
    """Return a prefix of alarm names: unique in the region, and known at synthesis."""
    stack = Stack.of(construct)
    path = construct.node.path.removeprefix(f"{stack.node.path}/")
    return f"{stack.stack_name}-{path.replace('/', '-')}-"


def _failed_events(scope: Construct, settings: ScalerSettings) -> sqs.Queue:
    queue = sqs.Queue(
        scope,
        "Failed",
        enforce_ssl=True,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        retention_period=Duration.days(settings.failed_days),
    )
    Validations.of(queue).acknowledge(
        Acknowledgment(
            id="AwsSolutions::AwsSolutions-SQS3",
            reason="It is itself the dead-letter queue; an alarm watches it",
        )
    )
    return queue


def _allow(function: ServiceFunction, tables: ShardedEventTable, growth: GrowthSettings) -> None:
    tables.grant(function.role, ACCESS["scaler"])
    if growth.raises_capacity:
        tables.grant(function.role, RAISES_CAPACITY)
    cloudwatch = "arn:<AWS::Partition>:cloudwatch:<AWS::Region>:<AWS::AccountId>"
    rules = f"insight-rule/{INSIGHT_RULES}-{_table_name(tables, function)}-*"
    Validations.of(function.role).acknowledge(
        *(
            Acknowledgment(id=f"AwsSolutions::AwsSolutions-IAM5[Resource::{arn}]", reason=reason)
            for arn, reason in (
                (
                    f"{cloudwatch}:{rules}",
                    "DynamoDB ends its rules' names in the time it made them",
                ),
                (f"{cloudwatch}:alarm:*", "Alarms by a prefix are a list: IAM asks for alarm:*"),
                ("*", "cloudwatch:GetMetricData has no resources"),
            )
        )
    )


def _table_name(tables: ShardedEventTable, user: Construct) -> str:
    """Return the name of the events' table as cdk-nag reads it in the user's template."""
    home, name = Stack.of(tables), tables.events.table_name
    if home.node.path == Stack.of(user).node.path:
        return f"<{home.resolve(name)['Ref']}>"
    return str(home.resolve(home.export_value(name))["Fn::ImportValue"])
