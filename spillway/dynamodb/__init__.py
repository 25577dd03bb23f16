"""DynamoDB as the library sees it.

One callable, its errors, and the adapter that puts boto3 behind it.
"""
