"""The local cloud's CloudWatch: metrics of DynamoDB, Contributor Insights, and working alarms.

    the model's meters ──▶ throughput ──┐
    PutMetricData ──▶ metric_api ───────┼─▶ metric_store ──▶ metric_api  GetMetricData, …
    MiniStack, functions' logs ─────────┘        └─▶ alarms ──▶ SetAlarmState in MiniStack
    the model's key counts ──▶ insights   Describe…ContributorInsights, GetInsightRuleReport

MiniStack keeps alarms, their history and their topics. It would also evaluate alarms, incorrectly;
`emulated` keeps it from that. Metrics are kept here, because MiniStack's reads support neither
metric time nor units. MiniStack's own metrics (of Lambda, and those that functions write into their
logs in the embedded metric format) are fetched each minute and before each read.

**Not supported:** metric math (in alarms and in GetMetricData; both are refused with an error),
anomaly detection, Metrics Insights' SQL, trimmed statistics, cross-account reads, paging of reads,
expiry other than by number of minutes, and the minutes by which AWS's metrics arrive late. What AWS
evaluates once a minute is evaluated at the end of that minute.
"""
