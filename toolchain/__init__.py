"""Python, Node, npm and the CDK CLI: where this project's are, and how they are run."""
