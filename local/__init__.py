"""The local cloud: a DynamoDB engine, emulated AWS for the rest, and the real stacks on both."""
