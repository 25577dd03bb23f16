"""The scaler: what alarms and the schedule make of layouts and capacity, in minutes, where writers did not or could not."""
