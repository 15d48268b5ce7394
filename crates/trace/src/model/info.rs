//! The traced process, and how it was traced.

/// What a trace says about itself.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceInfo {
    /// The probability with which each word was sampled.
    pub sample_rate: f64,
    /// Bits in a word, 32 or 64.
    pub word_size: u8,
    /// The program, usually its path.
    pub executable: Vec<u8>,
    /// The name of the machine.
    pub host: Vec<u8>,
    /// The runtime's parameters as the runtime prints them.
    pub runtime_params: Vec<u8>,
    /// The process id.
    pub pid: u64,
    /// A label chosen when the trace was started; empty if the format has none.
    pub context: Vec<u8>,
    /// Microseconds since the epoch.
    pub start_time: u64,
    /// The domain that started the trace; 0 if the format has no domains.
    pub domain: u16,
}
