// One replica of one partition. Its methods are the steps of the contract that it can be given, with their arguments.
// It is safe where Kafka is not: F2 and F3 of docs/findings.md are repaired. The log is a list of leader epochs, one per record.
"use strict";

const ME = 1;
const UNDEFINED = -1;
const [NONE, OUT_OF_RANGE, NOT_LEADER, FENCED, UNKNOWN_EPOCH, INELIGIBLE, UNKNOWN_SERVER_ERROR] = [0, 1, 6, 74, 75, 107, -1];

class Replica {
  constructor(peers, minIsr) {
    Object.assign(this, { peers, minIsr, log: [], cache: [], hw: 0, highest: UNDEFINED });
    this.forget();
  }

  // Forgets what only a process knows.
  forget() {
    this.leader = this.epoch = this.partitionEpoch = this.epochStart = UNDEFINED;
    this.isr = [];
    this.proposed = null; // the ISR that counts until the controller has responded
    this.inFlight = null; // the proposal as it was sent
    this.logEnds = new Map(); // of the followers
    this.entry = null; // the fetcher's: { source, epoch, offset }
    this.truncates = false;
    this.requests = new Map();
  }

  // The largest epoch up to this one, and where it ends. LeaderEpochFileCache#endOffsetFor.
  endOf(epoch) {
    const last = this.cache.at(-1);
    if (!last || epoch > last.epoch || epoch === UNDEFINED) return [UNDEFINED, UNDEFINED];
    if (epoch === last.epoch) return [epoch, this.log.length];
    const at = this.cache.findIndex((each) => each.epoch > epoch);
    return [at === 0 ? epoch : this.cache[at - 1].epoch, this.cache[at].start];
  }

  // Adds an epoch to the cache and drops those that contradict it. LeaderEpochFileCache#assign.
  beginEpoch(epoch, start) {
    if (this.cache.at(-1)?.epoch === epoch) return;
    this.cache = [...this.cache.filter((each) => each.epoch < epoch && each.start < start), { epoch, start }];
  }

  truncate(offset) {
    this.log.length = Math.min(this.log.length, offset);
    this.cache = this.cache.filter((each) => each.start < offset);
    this.hw = Math.min(this.hw, offset);
  }

  metadata({ leader, leader_epoch: epoch, partition_epoch: partitionEpoch, isr }) {
    this.highest = Math.max(this.highest, epoch);
    // The response to a proposal may have brought newer metadata before.
    if (partitionEpoch < this.partitionEpoch) return;
    // Or the same: Kafka reads it again, and forgets what it has proposed since (F3).
    if (leader === ME && leader === this.leader && epoch === this.epoch && partitionEpoch === this.partitionEpoch) return;
    const newer = epoch > this.epoch;
    // Kafka keeps the log ends if it led before, be it two epochs ago (F2).
    if (newer) this.logEnds.clear();
    Object.assign(this, { leader, epoch, partitionEpoch, isr, proposed: null });
    if (leader === ME) {
      this.entry = null;
      this.truncates = false;
      if (newer) this.beginEpoch(epoch, (this.epochStart = this.log.length));
      this.raiseHw();
      return;
    }
    this.epochStart = UNDEFINED;
    if (newer) {
      this.truncates = this.cache.length === 0;
      this.entry = leader === UNDEFINED ? null : { source: leader, epoch, offset: this.log.length };
    }
  }

  // To the lowest log end of the ISR and of the members that are proposed for it.
  raiseHw() {
    if (this.leader !== ME || this.isr.length < Math.min(this.minIsr, 1 + this.peers.length)) return;
    const counted = [...this.isr, ...(this.proposed ?? [])].filter((broker) => broker !== ME);
    const ends = counted.map((broker) => this.logEnds.get(broker) ?? UNDEFINED);
    this.hw = Math.max(this.hw, Math.min(this.log.length, ...ends));
  }

  append() {
    if (this.leader !== ME) return { error: NOT_LEADER, base: UNDEFINED };
    this.beginEpoch(this.epoch, this.log.length);
    this.log.push(this.epoch);
    this.raiseHw();
    return { error: NONE, base: this.log.length - 1 };
  }

  refusal(epoch) {
    if (epoch !== UNDEFINED && epoch !== this.epoch) return epoch < this.epoch ? FENCED : UNKNOWN_EPOCH;
    return this.leader === ME ? NONE : NOT_LEADER;
  }

  fetch({ peer, current_leader_epoch: current, fetch_offset: offset, last_fetched_epoch: last, may_join: mayJoin }) {
    const error = this.refusal(current);
    if (error !== NONE || offset < 0) return { error: error || OUT_OF_RANGE };
    const response = { error: NONE, hw: this.hw, log_start: 0, records: [], diverging: null };
    if (last !== UNDEFINED) {
      const [epoch, end] = this.endOf(last);
      if (epoch === UNDEFINED) return { error: OUT_OF_RANGE };
      if (epoch < last || end < offset) return { ...response, diverging: [epoch, end] };
    }
    if (offset > this.log.length) return { error: OUT_OF_RANGE };
    const known = this.logEnds.get(peer);
    this.logEnds.set(peer, offset);
    const caughtUp = this.epochStart !== UNDEFINED && offset >= Math.max(this.hw, this.epochStart);
    if (mayJoin && caughtUp && this.proposed === null && !this.isr.includes(peer)) this.propose([...this.isr, peer]);
    if (offset !== known) this.raiseHw();
    if (offset < this.log.length) response.records.push([offset, offset, this.log[offset]]);
    return response;
  }

  offsets_for_leader_epoch({ current_leader_epoch: current, leader_epoch: asked }) {
    const error = this.refusal(current);
    if (error !== NONE) return { error };
    const [epoch, end] = this.endOf(asked);
    return { error, leader_epoch: epoch, end_offset: end };
  }

  propose(isr) {
    this.proposed = isr.sort((a, b) => a - b);
    this.inFlight = { isr: this.proposed, leader_epoch: this.epoch, partition_epoch: this.partitionEpoch };
  }

  lag({ peers }) {
    this.propose(this.isr.filter((broker) => !peers.includes(broker)));
  }

  alter_partition_response({ error, partition_epoch: partitionEpoch, isr }) {
    const pending = this.proposed !== null && this.leader === ME; // metadata may have been faster than the response
    if (!pending || error !== UNKNOWN_SERVER_ERROR) this.inFlight = null; // after that one it is sent again
    if (!pending) return;
    if (error === NONE && partitionEpoch >= this.partitionEpoch) {
      Object.assign(this, { isr, partitionEpoch, proposed: null });
      this.raiseHw();
    } else if (error === INELIGIBLE) this.proposed = null;
  }

  // The fetcher thread: truncates to the high watermark where it has no epochs, then fetches unless a request is in flight.
  ask() {
    if (this.entry === null || this.requests.has(this.entry.source)) return;
    if (this.truncates) {
      this.truncate(this.hw);
      this.truncates = false;
      this.entry.offset = this.log.length;
    }
    const { source, epoch, offset } = this.entry;
    const last = this.cache.at(-1)?.epoch ?? UNDEFINED;
    this.requests.set(source, { current_leader_epoch: epoch, fetch_offset: offset, last_fetched_epoch: last, log_start: 0 });
  }

  lose_response({ peer }) {
    this.requests.delete(peer);
  }

  fetch_response({ peer, error, hw, records, diverging, offsets }) {
    const request = this.requests.get(peer);
    this.requests.delete(peer);
    const { entry } = this;
    if (entry === null || peer !== entry.source) return;
    if (request.current_leader_epoch === entry.epoch && request.fetch_offset === entry.offset) {
      if (error === FENCED) {
        this.entry = null;
        return;
      }
      if (error === OUT_OF_RANGE && offsets?.[1] < this.log.length) this.truncate(offsets[1]);
      else if (error === NONE && diverging) this.truncate(this.agreed(...diverging));
      else if (error === NONE) this.take(records, hw);
    }
    entry.offset = this.log.length;
  }

  take(records, hw) {
    const foreign = records.findIndex((record) => record[2] > this.entry.epoch);
    for (const [base, , epoch] of foreign < 0 ? records : records.slice(0, foreign)) {
      this.beginEpoch(epoch, base);
      this.log.push(epoch);
    }
    this.hw = Math.max(0, Math.min(hw, this.log.length));
  }

  // Up to where the logs agree, by the leader's epoch end and the own cache.
  agreed(leaderEpoch, leaderEnd) {
    if (leaderEnd === UNDEFINED) return this.log.length;
    const [epoch, end] = this.endOf(leaderEpoch);
    if (leaderEpoch === UNDEFINED || epoch === UNDEFINED) return Math.min(leaderEnd, this.log.length);
    return Math.min(end, this.log.length, ...(epoch === leaderEpoch ? [leaderEnd] : []));
  }

  // Ends the process and starts it again with what is on disk; recovery reads the log and adds later epochs to the cache.
  crash({ hw }) {
    this.forget();
    this.log.forEach((epoch, offset) => {
      if (epoch > (this.cache.at(-1)?.epoch ?? UNDEFINED)) this.beginEpoch(epoch, offset);
    });
    this.cache = this.cache.filter((each) => each.start < this.log.length);
    this.hw = Math.min(hw, this.log.length);
  }
}

module.exports = { Replica };
