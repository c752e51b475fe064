package main

import "slices"

type proposal struct {
	ISR            []int `json:"isr"`
	LeaderEpoch    int   `json:"leader_epoch"`
	PartitionEpoch int   `json:"partition_epoch"`
}

func (b *Broker) append(Step) any {
	if b.leader != me {
		return object{"error": notLeader}
	}
	b.log = append(b.log, b.epoch)
	b.raiseHW()
	return object{"error": ok, "base": len(b.log) - 1}
}

// Partition#checkCurrentLeaderEpoch, then #getLocalLog: the epoch is checked before the role.
func (b *Broker) refusal(epoch int) int {
	switch {
	case epoch != none && epoch < b.epoch:
		return fenced
	case epoch > b.epoch:
		return unknownEpoch
	case b.leader != me:
		return notLeader
	}
	return ok
}

func (b *Broker) offsetsForLeaderEpoch(s Step) any {
	epoch, end := b.endOf(s.LeaderEpoch)
	return object{"error": b.refusal(s.CurrentLeaderEpoch), "leader_epoch": epoch, "end_offset": end}
}

// Partition#fetchRecords: an unknown epoch, then divergence, then the offset.
func (b *Broker) fetch(s Step) any {
	if code := b.refusal(s.CurrentLeaderEpoch); code != ok {
		return object{"error": code}
	}
	if s.FetchOffset < 0 {
		return object{"error": outOfRange}
	}
	response := object{"error": ok, "hw": b.hw, "log_start": 0, "records": [][3]int{}, "diverging": nil}
	if s.LastFetchedEpoch != none {
		epoch, end := b.endOf(s.LastFetchedEpoch)
		if epoch == none {
			return object{"error": outOfRange}
		}
		if epoch < s.LastFetchedEpoch || end < s.FetchOffset {
			response["diverging"] = [2]int{epoch, end}
			return response
		}
	}
	if s.FetchOffset > len(b.log) {
		return object{"error": outOfRange}
	}
	if at := s.FetchOffset; at < len(b.log) {
		response["records"] = [][3]int{{at, at, b.log[at]}}
	}
	b.fetched(s.Peer, s.FetchOffset, s.MayJoin)
	return response
}

// Partition#updateFollowerFetchState; #isFollowerInSync: a follower joins with the high watermark and the epoch start.
func (b *Broker) fetched(peer, end int, mayJoin bool) {
	before, known := b.ends[peer]
	b.ends[peer] = end
	if mayJoin && !slices.Contains(b.isr, peer) && end >= max(b.hw, b.epochStart) {
		b.propose(append(slices.Clone(b.isr), peer))
	}
	if !known || before != end {
		b.raiseHW()
	}
}

// Partition#maybeIncrementLeaderHW: up to the lowest log end of Partition#maximalIsr, with enough in-sync replicas.
func (b *Broker) raiseHW() {
	if len(b.isr) < min(b.minISR, b.replicas) {
		return
	}
	counted, hw := b.isr, len(b.log)
	if b.pending != nil && len(b.pending.ISR) > len(counted) {
		counted = b.pending.ISR
	}
	for _, peer := range counted {
		if peer != me {
			hw = min(hw, b.ends[peer])
		}
	}
	b.hw = max(b.hw, hw)
}

// Partition#submitAlterPartition, one at a time
func (b *Broker) propose(isr []int) {
	if b.pending == nil {
		slices.Sort(isr)
		b.pending = &proposal{isr, b.epoch, b.partitionEpoch}
		b.inFlight = b.pending
	}
}

// Partition#maybeShrinkIsr
func (b *Broker) lag(s Step) any {
	b.propose(slices.DeleteFunc(slices.Clone(b.isr), func(member int) bool { return slices.Contains(s.Peers, member) }))
	return nil
}

// Partition#handleAlterPartitionUpdate, #handleAlterPartitionError: otherwise it stays pending until there is metadata.
func (b *Broker) alterPartitionResponse(s Step) any {
	if s.Error == unknownServerError && b.pending == b.inFlight {
		return nil // sent again
	}
	switch b.inFlight = nil; {
	case b.pending == nil: // metadata was faster
	case s.Error == ok && s.PartitionEpoch >= b.partitionEpoch:
		b.isr, b.partitionEpoch, b.pending = s.ISR, s.PartitionEpoch, nil
		b.raiseHW()
	case s.Error == notAttempted || s.Error == ineligible:
		b.pending = nil
	}
	return nil
}
