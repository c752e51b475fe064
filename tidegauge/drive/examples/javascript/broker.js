// One replica of one partition that leads: it takes records, serves its followers, and promises what all of its ISR have.
"use strict";

const ME = 1, NONE = -1;
const NOT_LEADER = 6, OUT_OF_RANGE = 1, FENCED = 74, UNKNOWN_EPOCH = 75;

class Replica {
  constructor(minInsyncReplicas, peers) {
    this.log = [];           // the leader epoch of each record
    this.cache = [];         // [leader epoch, its first offset]
    this.hw = 0;
    this.leader = this.epoch = this.partitionEpoch = NONE;
    this.isr = [];
    this.proposed = null;    // the peer that is to join the ISR: it counts before the controller has agreed
    this.epochStart = 0;
    this.ends = new Map();   // the log ends that followers have shown
    this.enough = Math.min(minInsyncReplicas, 1 + peers.length);
  }

  metadata({ leader, leader_epoch, partition_epoch, isr }) {
    if (partition_epoch < this.partitionEpoch) return null;
    // What it knows already changes nothing: Kafka would forget whom it has proposed.
    if (this.leader === ME && leader_epoch === this.epoch && partition_epoch === this.partitionEpoch) return null;
    // In another epoch a follower may have truncated: what it once had says nothing any more.
    if (leader_epoch > this.epoch) {
      this.ends.clear();
      if (leader === ME) this.begin(leader_epoch);
      this.epochStart = this.log.length;
    }
    Object.assign(this, { leader, epoch: leader_epoch, partitionEpoch: partition_epoch, isr, proposed: null });
    this.promise();
    return null;
  }

  begin(epoch) {
    if (this.cache.length && this.cache.at(-1)[0] === epoch) return;
    this.cache = this.cache.filter(([, start]) => start < this.log.length);
    this.cache.push([epoch, this.log.length]);
  }

  promise() {
    if (this.leader !== ME || this.isr.length < this.enough) return;
    const counted = [...this.isr, this.proposed ?? ME].filter((id) => id !== ME);
    const ends = counted.map((id) => this.ends.get(id) ?? NONE);
    this.hw = Math.max(this.hw, Math.min(this.log.length, ...ends));
  }

  append() {
    if (this.leader !== ME) return { error: NOT_LEADER };
    this.begin(this.epoch);
    this.log.push(this.epoch);
    this.promise();
    return { error: 0, base: this.log.length - 1 };
  }

  endOf(epoch) {
    const known = this.cache.filter(([e]) => e <= epoch).at(-1);
    if (!this.cache.length || epoch > this.cache.at(-1)[0]) return [NONE, NONE];
    if (!known) return [epoch, this.cache[0][1]];
    const next = this.cache.find(([e]) => e > epoch);
    return [known[0], next ? next[1] : this.log.length];
  }

  fetch({ peer, current_leader_epoch, fetch_offset, last_fetched_epoch, may_join }) {
    // A peer that knows no epoch sends -1, which is not compared.
    if (current_leader_epoch !== NONE && current_leader_epoch < this.epoch) return { error: FENCED };
    if (current_leader_epoch > this.epoch) return { error: UNKNOWN_EPOCH };
    if (this.leader !== ME) return { error: NOT_LEADER };
    if (fetch_offset < 0) return { error: OUT_OF_RANGE };
    const response = { error: 0, hw: this.hw, log_start: 0, records: [], diverging: null };
    if (last_fetched_epoch !== NONE) {
      const [epoch, end] = this.endOf(last_fetched_epoch);
      if (epoch === NONE) return { error: OUT_OF_RANGE };
      if (epoch < last_fetched_epoch || end < fetch_offset) return { ...response, diverging: [epoch, end] };
    }
    if (fetch_offset > this.log.length) return { error: OUT_OF_RANGE };
    const moved = this.ends.get(peer) !== fetch_offset;
    this.ends.set(peer, fetch_offset);
    const caughtUp = fetch_offset >= Math.max(this.hw, this.epochStart);
    if (may_join && caughtUp && this.proposed === null && !this.isr.includes(peer)) this.proposed = peer;
    if (moved) this.promise();
    if (fetch_offset < this.log.length) response.records = [[fetch_offset, fetch_offset, this.log[fetch_offset]]];
    return response;
  }
}

module.exports = { Replica };
