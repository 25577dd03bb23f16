"""Events of the scaler function: alarms, by SNS or directly, and the schedule."""
