package main

type request struct {
	Epoch     int `json:"current_leader_epoch"`
	Offset    int `json:"fetch_offset"`
	LastEpoch int `json:"last_fetched_epoch"`
	LogStart  int `json:"log_start"`
}

// A fetcher thread has one request in flight, and asks as soon as it can.
func (b *Broker) ask() {
	if _, waits := b.requests[b.leader]; b.fetching && !waits {
		if b.truncating { // AbstractFetcherThread#truncateToHighWatermark
			b.truncating = false
			b.truncate(b.hw)
		}
		b.requests[b.leader] = request{b.epoch, len(b.log), b.lastEpoch(), 0}
	}
}

func (b *Broker) loseResponse(s Step) any {
	delete(b.requests, s.Peer)
	return nil
}

// AbstractFetcherThread#processFetchRequest: only what was asked in this epoch, at this offset (KAFKA-18991).
func (b *Broker) fetchResponse(s Step) any {
	asked := b.requests[s.Peer]
	delete(b.requests, s.Peer)
	if !b.fetching || s.Peer != b.leader || asked.Epoch != b.epoch || asked.Offset != len(b.log) {
		return nil
	}
	switch {
	case s.Error == fenced: // #onPartitionFenced: out of the thread until the epoch grows
		b.fetching = false
	case s.Error == outOfRange && s.Offsets != nil: // #fetchOffsetAndTruncate: a log longer than the leader's is cut
		if latest := s.Offsets[1]; latest < len(b.log) {
			b.truncate(latest)
		}
	case s.Error != ok:
	case s.Diverging != nil: // not its high watermark (KAFKA-14704)
		b.truncate(b.divergence(s.Diverging[0], s.Diverging[1]))
	default:
		for _, record := range s.Records {
			if record[2] > b.epoch { // UnifiedLog#appendAsFollower (KAFKA-18723)
				break
			}
			b.assign(record[2], record[0])
			b.log = append(b.log, record[2])
		}
		b.hw = min(max(s.HW, 0), len(b.log)) // UnifiedLog#updateHighWatermark: down, too
	}
	return nil
}

// AbstractFetcherThread#getOffsetTruncationState
func (b *Broker) divergence(leaderEpoch, leaderEnd int) int {
	switch epoch, end := b.endOf(leaderEpoch); epoch {
	case none:
		return leaderEnd
	case leaderEpoch:
		return min(end, leaderEnd)
	default:
		return end
	}
}
