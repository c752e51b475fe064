//! A log that begins at offset 0, its leader epochs and its high watermark: what a restart leaves.

pub const NONE: i64 = -1; // no leader, no epoch, no offset

#[derive(Default)]
pub struct Log {
    pub records: Vec<i64>,      // the leader epoch of each
    pub cache: Vec<(i64, i64)>, // leader epochs and where they start
    pub hw: i64,
}

impl Log {
    pub fn end(&self) -> i64 {
        self.records.len() as i64
    }

    pub fn last_epoch(&self) -> i64 {
        self.cache.last().map_or(NONE, |entry| entry.0)
    }

    /// LeaderEpochFileCache#endOffsetFor: the largest epoch up to this one, and where the next one starts.
    pub fn end_of(&self, epoch: i64) -> Option<(i64, i64)> {
        let (lower, higher) = self.cache.split_at(self.cache.partition_point(|entry| entry.0 <= epoch));
        let found = lower.last().map_or(epoch, |entry| entry.0);
        match higher.first() {
            _ if epoch == NONE => None,
            Some(next) => Some((found, next.1)),
            None => (self.last_epoch() == epoch).then(|| (epoch, self.end())),
        }
    }

    /// LeaderEpochFileCache#assign: entries that contradict the new one go.
    pub fn assign(&mut self, epoch: i64, start: i64) {
        if epoch != self.last_epoch() {
            self.cache.retain(|entry| entry.0 < epoch && entry.1 < start);
            self.cache.push((epoch, start));
        }
    }

    /// UnifiedLog#truncateTo: an epoch that starts at the new end goes, even if no record does.
    pub fn truncate(&mut self, end: i64) {
        self.records.truncate(end as usize);
        let end = self.end();
        self.hw = self.hw.min(end);
        self.cache.retain(|entry| entry.1 < end);
    }

    /// LogSegment#recover reads the epochs of the records again; LogLoader#load drops one that has none.
    pub fn recover(&mut self, hw: i64) {
        for start in 0..self.records.len() {
            if self.records[start] > self.last_epoch() {
                self.assign(self.records[start], start as i64);
            }
        }
        self.hw = hw;
        self.truncate(self.end());
    }
}
