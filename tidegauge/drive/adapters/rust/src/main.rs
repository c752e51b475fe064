//! A small broker behind the drive contract (docs/drive.md):
//! `cargo build --release`, then `tidegauge drive -- target/release/broker`

mod broker;
mod log;

use broker::Broker;
use serde::Deserialize;
use serde_json::{json, Value};
use std::collections::HashMap;
use std::io::{stdin, stdout, Result, Write};

const CAN: [&str; 6] = ["metadata", "append", "fetch", "fetch_response", "lose_response", "crash"];
const REPORTS: [&str; 5] = ["result", "requests", "leo", "hw", "ends"];

/// Any line that is read. A field that it does not have is left at its default.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Step {
    p: u64,
    step: String,
    pub peers: Vec<i64>,
    pub min_insync_replicas: usize,
    pub leader: i64,
    pub leader_epoch: i64,
    pub isr: Vec<i64>,
    pub peer: i64,
    pub current_leader_epoch: i64,
    pub fetch_offset: i64,
    pub last_fetched_epoch: i64,
    pub may_join: bool,
    pub error: i64,
    pub hw: i64,
    pub records: Vec<(i64, i64, i64)>,
    pub diverging: Option<(i64, i64)>,
    pub offsets: Option<(i64, i64)>,
}

fn main() -> Result<()> {
    let mut lines = stdin().lines();
    let mut out = stdout();
    lines.next(); // the driver's handshake
    writeln!(out, "{}", json!({"contract": 1, "name": "rust", "can": CAN, "reports": REPORTS}))?;
    let mut brokers = HashMap::new();
    for line in lines {
        let step: Step = serde_json::from_str(&line?)?;
        let p = step.p;
        if step.step == "close" {
            brokers.remove(&p);
            continue;
        }
        let broker = brokers.entry(p).or_insert_with(|| Broker::opened(&step));
        let result = taken(broker, step);
        broker.ask();
        writeln!(out, "{}", broker.report(p, result))?;
    }
    Ok(())
}

/// The response to the step's request, null without a request.
fn taken(broker: &mut Broker, step: Step) -> Value {
    let answered = match step.step.as_str() {
        "append" => broker.append(),
        "fetch" => broker.fetch(step),
        other => {
            match other {
                "metadata" => broker.metadata(step),
                "fetch_response" => broker.fetch_response(step),
                "lose_response" => broker.lose_response(step),
                "crash" => broker.crash(step),
                _ => {} // open
            }
            return Value::Null;
        }
    };
    answered.unwrap_or_else(|error| json!({ "error": error }))
}
