//! The messages of OpenTelemetry's `profiles.proto` (v1.10.0, `v1development`) and of what it
//! includes, with the fields that are used here.

use prost::Oneof;

use crate::messages::messages;

messages! {
    ProfilesData {
        resource_profiles: Vec<ResourceProfiles> [message, repeated, tag = 1],
        dictionary: Option<ProfilesDictionary> [message, optional, tag = 2],
    }
    ProfilesDictionary {
        mapping_table: Vec<Mapping> [message, repeated, tag = 1],
        location_table: Vec<Location> [message, repeated, tag = 2],
        function_table: Vec<Function> [message, repeated, tag = 3],
        link_table: Vec<Empty> [message, repeated, tag = 4],
        string_table: Vec<String> [string, repeated, tag = 5],
        attribute_table: Vec<Empty> [message, repeated, tag = 6],
        stack_table: Vec<Stack> [message, repeated, tag = 7],
    }
    /// A message of which only the zero value is used.
    Empty {}
    ResourceProfiles {
        resource: Option<Resource> [message, optional, tag = 1],
        scope_profiles: Vec<ScopeProfiles> [message, repeated, tag = 2],
    }
    Resource {
        attributes: Vec<KeyValue> [message, repeated, tag = 1],
    }
    KeyValue {
        key: String [string, tag = 1],
        value: Option<AnyValue> [message, optional, tag = 2],
    }
    AnyValue {
        value: Option<Value> [oneof = "Value", tags = "1, 3"],
    }
    ScopeProfiles {
        scope: Option<InstrumentationScope> [message, optional, tag = 1],
        profiles: Vec<Profile> [message, repeated, tag = 2],
    }
    InstrumentationScope {
        name: String [string, tag = 1],
        version: String [string, tag = 2],
    }
    Profile {
        sample_type: Option<ValueType> [message, optional, tag = 1],
        samples: Vec<Sample> [message, repeated, tag = 2],
        time_unix_nano: u64 [fixed64, tag = 3],
        duration_nano: u64 [uint64, tag = 4],
        period_type: Option<ValueType> [message, optional, tag = 5],
        period: i64 [int64, tag = 6],
        profile_id: Vec<u8> [bytes = "vec", tag = 7],
    }
    #[derive(Copy)]
    ValueType {
        type_strindex: i32 [int32, tag = 1],
        unit_strindex: i32 [int32, tag = 2],
    }
    Sample {
        stack_index: i32 [int32, tag = 1],
        values: Vec<i64> [int64, repeated, tag = 4],
    }
    Mapping {
        filename_strindex: i32 [int32, tag = 4],
    }
    Stack {
        location_indices: Vec<i32> [int32, repeated, tag = 1],
    }
    Location {
        mapping_index: i32 [int32, tag = 1],
        lines: Vec<Line> [message, repeated, tag = 3],
    }
    Line {
        function_index: i32 [int32, tag = 1],
        line: i64 [int64, tag = 2],
        column: i64 [int64, tag = 3],
    }
    Function {
        name_strindex: i32 [int32, tag = 1],
        filename_strindex: i32 [int32, tag = 3],
    }
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Value {
    #[prost(string, tag = "1")]
    Text(String),
    #[prost(int64, tag = "3")]
    Integer(i64),
}
