//! heaptap, the plugin.
