//! queue: lock-free hand-over of event buffers.
