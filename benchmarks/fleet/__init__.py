"""A fleet of writers in virtual time, over the model of DynamoDB's partitions."""
