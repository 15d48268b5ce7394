"""heaptap run."""
