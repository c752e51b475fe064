package main

const me, none = 1, -1

// Kafka's error codes.
const ok, outOfRange, notLeader, notAttempted, fenced, unknownEpoch, ineligible, unknownServerError = 0, 1, 6, 55, 74, 75, 107, -1

// Broker is one replica. Its log begins at offset 0, and a record is its leader epoch.
type Broker struct {
	replicas, minISR, hw int
	heard                int // the highest leader epoch seen
	log                  []int
	cache                [][2]int // leader epochs and where they start
	process
}

// What ends with the process.
type process struct {
	leader, epoch, partitionEpoch int
	isr                           []int
	epochStart                    int             // as leader
	ends                          map[int]int     // as leader: how far peers have fetched
	pending                       *proposal       // as leader: Partition#partitionState is not committed
	inFlight                      *proposal       // to the controller
	fetching                      bool            // as follower: the fetcher thread has the partition
	truncating                    bool            // as follower: it is to truncate when the thread is free
	requests                      map[int]request // in flight to peers
}

func started() process {
	return process{leader: none, epoch: none, partitionEpoch: none, requests: map[int]request{}}
}

// Partition#makeLeader, #makeFollower; older than the response to a proposal, it is skipped.
func (b *Broker) metadata(s Step) any {
	b.heard = max(b.heard, s.LeaderEpoch)
	if s.PartitionEpoch < b.partitionEpoch {
		return nil
	}
	// Known from a response: Kafka reads it again, and forgets what it has proposed since (F3).
	if s.Leader == me && s.Leader == b.leader && s.LeaderEpoch == b.epoch && s.PartitionEpoch == b.partitionEpoch {
		return nil
	}
	newer := s.LeaderEpoch > b.epoch
	// Kafka keeps the log ends if it led before, be it two epochs ago (F2).
	if newer {
		b.ends = map[int]int{}
	}
	b.leader, b.epoch, b.partitionEpoch, b.isr, b.pending = s.Leader, s.LeaderEpoch, s.PartitionEpoch, s.ISR, nil
	switch {
	case b.leader == me:
		b.fetching = false
		if newer {
			b.epochStart = len(b.log)
			b.assign(b.epoch, b.epochStart)
		}
		b.raiseHW()
	case newer:
		b.fetching = b.leader != none
		b.truncating = len(b.cache) == 0
	}
	return nil
}

// LogLoader#load
func (b *Broker) stop(Step) any {
	b.truncate(len(b.log))
	b.process = started()
	return nil
}

// LogSegment#recover: after a crash the epochs of the records are read again.
func (b *Broker) crash(s Step) any {
	b.log, b.hw = b.log[:s.LogEnd], s.HW
	for offset, epoch := range b.log {
		if epoch > b.lastEpoch() {
			b.assign(epoch, offset)
		}
	}
	return b.stop(s)
}
