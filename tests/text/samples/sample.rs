//! Parses `key = value` lines.

use std::collections::HashMap;
use std::fmt;

#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    Text(&'a str),
    Number(f64),
    Flag(bool),
}

#[derive(Debug)]
pub struct ParseError { line: usize, why: &'static str }

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.why)
    }
}

/// Lines that start with `//` or `#` don't count.
pub fn parse(input: &str) -> Result<HashMap<&str, Value<'_>>, ParseError> {
    let mut out = HashMap::new();
    for (i, line) in input.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("//") {
            continue;
        }
        let (key, raw) = line.split_once('=').ok_or(ParseError { line: i + 1, why: "no '='" })?;
        let value = match raw.trim() {
            "true" => Value::Flag(true),
            "false" => Value::Flag(false),
            s => s.parse().map(Value::Number).unwrap_or(Value::Text(s)),
        };
        out.insert(key.trim(), value);
    }
    Ok(out)
}
