//! blocks: tracked blocks: young, major and external.
