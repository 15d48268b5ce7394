"""Summaries of repeated measurements."""

import statistics
from dataclasses import dataclass


@dataclass
class Spread:
    """Median and quartiles."""

    lower: float
    median: float
    upper: float
    count: int

    @classmethod
    def of(cls, values):
        if not values:
            return None
        if len(values) == 1:
            return cls(values[0], values[0], values[0], 1)
        lower, median, upper = statistics.quantiles(values, n=4, method="inclusive")
        return cls(lower, median, upper, len(values))
