"""The heat model's two modes side by side: the same workloads as single items and as rates."""
