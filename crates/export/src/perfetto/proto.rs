//! The messages of Perfetto's `trace_packet.proto` and of what it includes, with the fields that
//! are used here.

use prost::Oneof;

use crate::messages::messages;

messages! {
    TracePacket {
        clock_snapshot: Option<ClockSnapshot> [message, optional, tag = 6],
        timestamp: Option<u64> [uint64, optional, tag = 8],
        trusted_packet_sequence_id: u32 [uint32, tag = 10],
        track_event: Option<TrackEvent> [message, optional, tag = 11],
        interned_data: Option<InternedData> [message, optional, tag = 12],
        sequence_flags: Option<u32> [uint32, optional, tag = 13],
        profile_packet: Option<ProfilePacket> [message, optional, tag = 37],
        timestamp_clock_id: Option<u32> [uint32, optional, tag = 58],
        track_descriptor: Option<TrackDescriptor> [message, optional, tag = 60],
    }
    ClockSnapshot {
        clocks: Vec<Clock> [message, repeated, tag = 1],
        primary_trace_clock: i32 [int32, tag = 2],
    }
    Clock {
        clock_id: u32 [uint32, tag = 1],
        timestamp: u64 [uint64, tag = 2],
    }
    TrackDescriptor {
        uuid: u64 [uint64, tag = 1],
        name: Option<String> [string, optional, tag = 2],
        process: Option<ProcessDescriptor> [message, optional, tag = 3],
        thread: Option<ThreadDescriptor> [message, optional, tag = 4],
        parent_uuid: Option<u64> [uint64, optional, tag = 5],
        counter: Option<CounterDescriptor> [message, optional, tag = 8],
    }
    ProcessDescriptor {
        pid: i32 [int32, tag = 1],
        process_name: String [string, tag = 6],
    }
    ThreadDescriptor {
        pid: i32 [int32, tag = 1],
        tid: i64 [int64, tag = 2],
        thread_name: String [string, tag = 5],
    }
    CounterDescriptor {
        unit: i32 [int32, tag = 3],
    }
    TrackEvent {
        r#type: i32 [int32, tag = 9],
        track_uuid: u64 [uint64, tag = 11],
        name: Option<String> [string, optional, tag = 23],
        value: Option<CounterValue> [oneof = "CounterValue", tags = "30, 44"],
    }
    InternedData {
        function_names: Vec<InternedString> [message, repeated, tag = 5],
        frames: Vec<Frame> [message, repeated, tag = 6],
        callstacks: Vec<Callstack> [message, repeated, tag = 7],
        build_ids: Vec<InternedString> [message, repeated, tag = 16],
        mapping_paths: Vec<InternedString> [message, repeated, tag = 17],
        source_paths: Vec<InternedString> [message, repeated, tag = 18],
        mappings: Vec<Mapping> [message, repeated, tag = 19],
    }
    InternedString {
        iid: u64 [uint64, tag = 1],
        str: Vec<u8> [bytes = "vec", tag = 2],
    }
    Mapping {
        iid: u64 [uint64, tag = 1],
        build_id: u64 [uint64, tag = 2],
        path_string_ids: Vec<u64> [uint64, repeated, packed = "false", tag = 7],
    }
    Frame {
        iid: u64 [uint64, tag = 1],
        function_name_id: u64 [uint64, tag = 2],
        mapping_id: u64 [uint64, tag = 3],
        rel_pc: u64 [uint64, tag = 4],
        source_path_iid: Option<u64> [uint64, optional, tag = 5],
        line_number: Option<u32> [uint32, optional, tag = 6],
    }
    Callstack {
        iid: u64 [uint64, tag = 1],
        frame_ids: Vec<u64> [uint64, repeated, packed = "false", tag = 2],
    }
    ProfilePacket {
        process_dumps: Vec<ProcessHeapSamples> [message, repeated, tag = 5],
        continued: bool [bool, tag = 6],
        index: u64 [uint64, tag = 7],
    }
    ProcessHeapSamples {
        pid: u64 [uint64, tag = 1],
        samples: Vec<HeapSample> [message, repeated, tag = 2],
        timestamp: u64 [uint64, tag = 9],
        heap_name: String [string, tag = 11],
        sampling_interval_bytes: u64 [uint64, tag = 12],
    }
    HeapSample {
        callstack_id: u64 [uint64, tag = 1],
        self_allocated: u64 [uint64, tag = 2],
        self_freed: u64 [uint64, tag = 3],
        alloc_count: u64 [uint64, tag = 5],
        free_count: u64 [uint64, tag = 6],
    }
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum CounterValue {
    #[prost(int64, tag = "30")]
    Integer(i64),
    #[prost(double, tag = "44")]
    Double(f64),
}
