use std::collections::HashMap;
use std::{fmt, io::Read as R};

pub const RATE: f64 = 0.19;

/// One order.
#[derive(Debug, Clone)]
pub struct Order<'a> {
    pub number: u32,
    lines: Vec<&'a str>,
}

pub enum Error {
    Missing(String),
    Other,
}

/// Prices lines.
pub trait Pricer {
    fn price(&self, line: &str) -> Result<u32, Error>;
}

impl<'a> Order<'a> {
    /// Sums all lines. With tax.
    #[inline]
    pub fn total<P: Pricer>(&self, pricer: &P) -> Result<f64, Error> {
        let mut sum = 0.0;
        for line in &self.lines {
            sum += f64::from(pricer.price(line.trim())?);
        }
        println!("{}", sum);
        Ok(sum * (1.0 + RATE))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Missing(name) => write!(f, "missing {name}"),
            Error::Other => write!(f, "other"),
        }
    }
}

macro_rules! order {
    ($n:expr) => {
        Order { number: $n, lines: vec![] }
    };
}

mod tests {
    fn check() -> u32 {
        let order = order!(1);
        order.number
    }
}
