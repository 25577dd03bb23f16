"""The topics that alarms publish to: encrypted, over TLS only, and for this account's alarms only."""

from collections.abc import Iterable

from aws_cdk import Aws, RemovalPolicy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from aws_cdk.aws_sns_subscriptions import EmailSubscription
from constructs import Construct

from stacks.alarms import Audience

__all__ = ["AlarmTopics"]


class AlarmTopics(Construct):
    """One topic for the scaler, one for people, and the key of both ($1 a month).

    CloudWatch cannot use the key that AWS manages for SNS, so there is one of our own.

    Attributes:
        topics: by who is told.
    """

    def __init__(self, scope: Construct, construct_id: str, *, people: Iterable[str]) -> None:
        """Build the topics; `people` are e-mail addresses, each of which AWS asks for its consent."""
        super().__init__(scope, construct_id)
        key = kms.Key(
            self,
            "Key",
            description="Alarm messages of Spillway",
            enable_key_rotation=True,
            removal_policy=RemovalPolicy.DESTROY,  # it holds messages for seconds only
        )
        key.add_to_resource_policy(_by_alarms("kms:Decrypt", "kms:GenerateDataKey*", resource="*"))
        self.topics = {
            told: sns.Topic(
                self, f"{told.value.capitalize()}Topic", master_key=key, enforce_ssl=True
            )
            for told in Audience
        }
        for topic in self.topics.values():
            topic.add_to_resource_policy(_by_alarms("sns:Publish", resource=topic.topic_arn))
        for address in people:
            self.topics[Audience.PEOPLE].add_subscription(EmailSubscription(address))


def _by_alarms(*actions: str, resource: str) -> iam.PolicyStatement:
    """Allow this to CloudWatch on behalf of an alarm of this account and region."""
    alarms = f"arn:{Aws.PARTITION}:cloudwatch:{Aws.REGION}:{Aws.ACCOUNT_ID}:alarm:*"
    return iam.PolicyStatement(
        principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
        actions=[*actions],
        resources=[resource],
        conditions={
            "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
            "ArnLike": {"aws:SourceArn": alarms},
        },
    )
