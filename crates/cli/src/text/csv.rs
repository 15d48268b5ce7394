//! Fields of comma-separated values.

/// A field as in RFC 4180. Line breaks stay, inside quotes.
pub(crate) fn quoted(field: &str) -> String {
    if field.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", field.replace('"', "\"\""))
    } else {
        field.to_owned()
    }
}

/// A number, or an empty field if it is not known.
pub(crate) fn optional(number: Option<f64>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}

#[cfg(test)]
mod tests {
    #[test]
    fn fields_are_quoted_where_they_must_be() {
        assert_eq!(super::quoted("plain"), "plain");
        assert_eq!(super::quoted("a,\"b\""), "\"a,\"\"b\"\"\"");
    }
}
