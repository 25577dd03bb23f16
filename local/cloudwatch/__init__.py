"""The local cloud's CloudWatch: metrics of DynamoDB, Contributor Insights, and alarms that mean it.

    heat's meters ──▶ throughput ─┐
    PutMetricData ──▶ data ───────┼─▶ store ──▶ reading   GetMetricStatistics, GetMetricData, ListMetrics
    MiniStack's own,              │         └─▶ queries ──▶ evaluation ──▶ watch ──▶ SetAlarmState
    functions' logs ──▶ data ─────┘                                          (MiniStack: history, SNS)
    heat's insights ──▶ contributors, reports   Describe/Update/ListContributorInsights, GetInsightRuleReport

MiniStack keeps alarms, their history and their topics; it also would evaluate them, wrongly. `emulated`
says how it is kept from that. The metrics are kept here, because MiniStack's reads know no metric time,
no expressions and no units; MiniStack's own metrics (of Lambda, and what functions write into their logs in
the embedded metric format) are fetched each minute and before each read.

**Not here:** anomaly detection's models, Metrics Insights' SQL, SEARCH, trimmed statistics, cross-account
reads, paging of reads, expiry other than by number of minutes, and the minutes by which AWS's metrics
arrive late. What AWS evaluates once a minute is evaluated at the end of that minute.
"""
