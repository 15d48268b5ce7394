//! The messages of pprof's `profile.proto`, with the fields that are used here.

use std::collections::HashMap;

use crate::messages::messages;

messages! {
    Profile {
        sample_type: Vec<ValueType> [message, repeated, tag = 1],
        sample: Vec<Sample> [message, repeated, tag = 2],
        location: Vec<Location> [message, repeated, tag = 4],
        function: Vec<Function> [message, repeated, tag = 5],
        string_table: Vec<String> [string, repeated, tag = 6],
        time_nanos: i64 [int64, tag = 9],
        duration_nanos: i64 [int64, tag = 10],
        period_type: Option<ValueType> [message, optional, tag = 11],
        period: i64 [int64, tag = 12],
        default_sample_type: i64 [int64, tag = 14],
    }
    ValueType {
        r#type: i64 [int64, tag = 1],
        unit: i64 [int64, tag = 2],
    }
    Sample {
        location_id: Vec<u64> [uint64, repeated, tag = 1],
        value: Vec<i64> [int64, repeated, tag = 2],
    }
    Location {
        id: u64 [uint64, tag = 1],
        line: Vec<Line> [message, repeated, tag = 4],
    }
    Line {
        function_id: u64 [uint64, tag = 1],
        line: i64 [int64, tag = 2],
    }
    Function {
        id: u64 [uint64, tag = 1],
        name: i64 [int64, tag = 2],
        system_name: i64 [int64, tag = 3],
        filename: i64 [int64, tag = 4],
    }
}

/// The strings of a profile, each once. The first one is empty, as pprof demands.
pub(crate) struct StringTable {
    pub(crate) list: Vec<String>,
    numbers: HashMap<String, i64>,
}

impl StringTable {
    pub(crate) fn new() -> Self {
        let mut strings = StringTable { list: Vec::new(), numbers: HashMap::new() };
        strings.number("");
        strings
    }

    pub(crate) fn number(&mut self, text: &str) -> i64 {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        let number = self.list.len() as i64;
        self.list.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_numbered_once() {
        let mut strings = StringTable::new();
        assert_eq!([strings.number(""), strings.number("a"), strings.number("")], [0, 1, 0]);
        assert_eq!(strings.list, ["", "a"]);
    }
}
