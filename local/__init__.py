"""The local cloud: a DynamoDB engine and emulated AWS behind one endpoint on the loopback address."""
