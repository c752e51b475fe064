//! One replica, follower and leader. Each rule has the method of Kafka that decides it.

use crate::log::{Log, NONE};
use crate::Step;
use serde_json::{json, Value};
use std::collections::HashMap;

const ME: i64 = 1;
const OUT_OF_RANGE: i64 = 1;
const NOT_LEADER: i64 = 6;
const FENCED: i64 = 74;
const UNKNOWN_EPOCH: i64 = 75;

/// One replica.
#[derive(Default)]
pub struct Broker {
    replicas: usize,
    min_isr: usize,
    log: Log,
    epochs: i64, // one above the highest leader epoch seen
    process: Process,
}

/// What ends with the process: as leader `epoch_start` to `ends`, as follower `fetching` and `requests`.
#[derive(Default)]
struct Process {
    leader: i64,
    epoch: Option<i64>,
    epoch_start: i64,
    isr: Vec<i64>,
    joining: Option<i64>,          // the follower proposed for the ISR
    ends: HashMap<i64, i64>,       // log ends of the peers that have fetched
    fetching: bool,                // whether the fetcher thread has the partition
    truncating: bool,              // whether it is to truncate when the thread is free
    requests: HashMap<i64, Value>, // in flight, by peer
}

impl Broker {
    pub fn opened(step: &Step) -> Self {
        Self { replicas: 1 + step.peers.len(), min_isr: step.min_insync_replicas, ..Self::default() }
    }

    /// Partition#makeLeader, #makeFollower.
    pub fn metadata(&mut self, step: Step) {
        let newer = Some(step.leader_epoch) > self.process.epoch;
        // Kafka keeps the log ends if it led before, be it two epochs ago (F2).
        if newer {
            self.process.ends.clear();
        }
        self.process.leader = step.leader;
        (self.process.epoch, self.process.isr, self.process.joining) = (Some(step.leader_epoch), step.isr, None);
        self.epochs = self.epochs.max(step.leader_epoch + 1);
        if step.leader == ME {
            self.process.fetching = false;
            if newer {
                self.process.epoch_start = self.log.end();
                self.log.assign(step.leader_epoch, self.log.end());
            }
            self.raise_hw();
        } else if newer {
            self.process.fetching = step.leader != NONE;
            self.process.truncating = self.process.fetching && self.log.cache.is_empty();
        }
    }

    pub fn append(&mut self) -> Result<Value, i64> {
        let epoch = self.process.epoch.filter(|_| self.process.leader == ME).ok_or(NOT_LEADER)?;
        self.log.records.push(epoch);
        self.raise_hw();
        Ok(json!({"error": 0, "base": self.log.end() - 1}))
    }

    /// Partition#fetchRecords: the epoch and the role, then an unknown epoch, then divergence, then the offset.
    pub fn fetch(&mut self, step: Step) -> Result<Value, i64> {
        match Some(step.current_leader_epoch) {
            Some(NONE) => {}
            requested if requested < self.process.epoch => return Err(FENCED),
            requested if requested > self.process.epoch => return Err(UNKNOWN_EPOCH),
            _ => {}
        }
        if self.process.leader != ME {
            return Err(NOT_LEADER);
        }
        let (offset, last) = (step.fetch_offset, step.last_fetched_epoch);
        if offset < 0 {
            return Err(OUT_OF_RANGE);
        }
        let mut response = json!({"error": 0, "hw": self.log.hw, "log_start": 0, "records": [], "diverging": null});
        if last != NONE {
            let (epoch, end) = self.log.end_of(last).ok_or(OUT_OF_RANGE)?;
            if epoch < last || end < offset {
                response["diverging"] = json!([epoch, end]);
                return Ok(response);
            }
        }
        if offset > self.log.end() {
            return Err(OUT_OF_RANGE);
        }
        if let Some(epoch) = self.log.records.get(offset as usize) {
            response["records"] = json!([[offset, offset, epoch]]);
        }
        let known = self.process.ends.insert(step.peer, offset);
        // Partition#isFollowerInSync: a follower joins with the high watermark and the epoch start.
        let caught_up = offset >= self.log.hw.max(self.process.epoch_start);
        if step.may_join && caught_up && !self.process.isr.contains(&step.peer) {
            self.process.joining.get_or_insert(step.peer);
        }
        if known != Some(offset) {
            self.raise_hw();
        }
        Ok(response)
    }

    /// Partition#maybeIncrementLeaderHW: to the lowest log end of the ISR and the joining follower, with enough of them.
    fn raise_hw(&mut self) {
        if self.process.isr.len() >= self.min_isr.min(self.replicas) {
            let counted = self.process.isr.iter().chain(&self.process.joining).filter(|&&member| member != ME);
            let ends = counted.map(|member| self.process.ends.get(member).copied().unwrap_or(NONE));
            self.log.hw = ends.fold(self.log.end(), i64::min).max(self.log.hw);
        }
    }

    /// AbstractFetcherThread#processFetchRequest: only what was asked in this epoch, at this offset (KAFKA-18991).
    pub fn fetch_response(&mut self, step: Step) {
        let asked = self.process.requests.remove(&step.peer).unwrap_or_default();
        let epoch = self.process.epoch.filter(|_| self.process.fetching && step.peer == self.process.leader);
        if asked["current_leader_epoch"].as_i64() != epoch || asked["fetch_offset"] != self.log.end() {
            return;
        }
        match (step.error, step.offsets, step.diverging) {
            (FENCED, ..) => self.process.fetching = false, // #onPartitionFenced: out of the thread until the epoch grows
            (OUT_OF_RANGE, Some((_, latest)), _) if latest < self.log.end() => self.log.truncate(latest), // #fetchOffsetAndTruncate
            (0, _, Some(leader)) => self.log.truncate(self.divergence(leader)), // not its high watermark (KAFKA-14704)
            (0, ..) => {
                for (base, _, epoch) in step.records {
                    if Some(epoch) > self.process.epoch {
                        break; // UnifiedLog#appendAsFollower (KAFKA-18723)
                    }
                    self.log.assign(epoch, base);
                    self.log.records.push(epoch);
                }
                self.log.hw = step.hw.clamp(0, self.log.end()); // UnifiedLog#updateHighWatermark: down, too
            }
            _ => {}
        }
    }

    /// AbstractFetcherThread#getOffsetTruncationState
    fn divergence(&self, leader: (i64, i64)) -> i64 {
        match self.log.end_of(leader.0) {
            None => leader.1,
            Some((epoch, end)) if epoch == leader.0 => end.min(leader.1),
            Some((_, end)) => end,
        }
    }

    pub fn lose_response(&mut self, step: Step) {
        self.process.requests.remove(&step.peer);
    }

    /// A fetcher thread has one request in flight, and asks as soon as it can.
    pub fn ask(&mut self) {
        if self.process.fetching && !self.process.requests.contains_key(&self.process.leader) {
            if std::mem::take(&mut self.process.truncating) {
                self.log.truncate(self.log.hw); // AbstractFetcherThread#truncateToHighWatermark
            }
            let (epoch, last) = (self.process.epoch, self.log.last_epoch());
            let request = json!({"current_leader_epoch": epoch, "fetch_offset": self.log.end(), "last_fetched_epoch": last, "log_start": 0});
            self.process.requests.insert(self.process.leader, request);
        }
    }

    pub fn crash(&mut self, step: Step) {
        self.log.recover(step.hw);
        self.process = Process::default();
    }

    pub fn report(&self, p: u64, result: Value) -> Value {
        let ends: Vec<_> = (0..self.epochs).map(|epoch| self.log.end_of(epoch).unwrap_or((NONE, NONE))).collect();
        json!({"p": p, "result": result, "requests": self.process.requests, "leo": self.log.end(), "hw": self.log.hw, "ends": ends})
    }
}
