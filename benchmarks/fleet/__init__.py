"""A fleet of writers in virtual time: the shipped library over the model of DynamoDB's partitions."""
