//! sampling: geometric gaps, and the split of a combined allocation.
