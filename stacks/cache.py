"""The stack of the cache: DAX, in a network of its own. Only stages with a cache have it."""

from aws_cdk import CfnOutput, Fn, Stack
from aws_cdk import aws_dax as dax
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_iam as iam
from constructs import Construct

from spillway.cdk.access import ACCESS, DAX_ACCESS, statements
from stacks.config import CacheSettings, Stage
from stacks.network import PrivateNetwork
from stacks.storage import StorageStack

__all__ = ["CacheStack"]

_TLS_PORT = ec2.Port.tcp(9111)


class CacheStack(Stack):
    """DAX for eventually consistent reads. Deleting it loses nothing: reads go to DynamoDB then.

    Attributes:
        network: where functions that read through the cache stand.
        endpoint: URL of the cluster, `daxs://…`.
        cluster_arn: for the rights of such functions.
        cluster_name: the dimension `ClusterId` of its metrics.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: Stage,
        cache: CacheSettings,
        storage: StorageStack,
    ) -> None:
        """Build the cluster that reads the tables of `storage`."""
        self._zones = cache.zones
        super().__init__(
            scope,
            construct_id,
            description=f"Spillway {stage.name}: DAX and its network",
            termination_protection=stage.deletion_protection,
        )
        allowed = [
            statement
            for access in (ACCESS["query"], DAX_ACCESS)
            for statement in statements(
                access, events=storage.events, layouts=storage.layouts, usage=storage.usage
            )
        ]
        self.network = PrivateNetwork(self, "Network", stage=stage, cache=cache, allowed=allowed)
        role = iam.Role(self, "DaxRole", assumed_by=iam.ServicePrincipal("dax.amazonaws.com"))
        for statement in statements(
            DAX_ACCESS, events=storage.events, layouts=storage.layouts, usage=storage.usage
        ):
            role.add_to_policy(statement)
        cluster = self._cluster(cache, role=role, group=self._cluster_group())
        self.endpoint = cluster.attr_cluster_discovery_endpoint_url
        self.cluster_arn = cluster.attr_arn
        self.cluster_name = cluster.ref

        CfnOutput(self, "DaxEndpoint", value=self.endpoint)

    @property
    def availability_zones(self) -> list[str]:
        """Return the first zones of the region; synthesis asks no account."""
        return [Fn.select(number, Fn.get_azs()) for number in range(self._zones)]

    def _cluster_group(self) -> ec2.SecurityGroup:
        group = ec2.SecurityGroup(
            self,
            "Dax",
            vpc=self.network.vpc,
            description="Spillway DAX cluster",
            allow_all_outbound=False,
        )
        self.network.let_out_to_dynamodb(group)
        self.network.function_group.connections.allow_to(group, _TLS_PORT, "DAX over TLS")
        return group

    def _cluster(
        self, cache: CacheSettings, *, role: iam.Role, group: ec2.SecurityGroup
    ) -> dax.CfnCluster:
        subnets = dax.CfnSubnetGroup(
            self,
            "Subnets",
            subnet_ids=[subnet.subnet_id for subnet in self.network.vpc.isolated_subnets],
        )
        cluster = dax.CfnCluster(
            self,
            "Cluster",
            description="Spillway: eventually consistent reads of layouts and closed ranges",
            node_type=cache.node_type,
            replication_factor=cache.nodes,
            iam_role_arn=role.role_arn,
            subnet_group_name=subnets.ref,
            security_group_ids=[group.security_group_id],
            parameter_group_name=self._parameters(cache).ref,
            sse_specification=dax.CfnCluster.SSESpecificationProperty(sse_enabled=True),
            cluster_endpoint_encryption_type="TLS",
        )
        cluster.node.add_dependency(role)  # and on its policy: DAX describes the tables at once
        return cluster

    def _parameters(self, cache: CacheSettings) -> dax.CfnParameterGroup:
        item, query = cache.item_ttl_seconds, cache.query_ttl_seconds
        # A group in use cannot be changed, so other TTLs are another group.
        return dax.CfnParameterGroup(
            self,
            f"Ttl{item}s{query}s",
            description=f"Items {item} s, queries {query} s",
            parameter_name_values={
                "record-ttl-millis": str(item * 1_000),
                "query-ttl-millis": str(query * 1_000),
            },
        )
