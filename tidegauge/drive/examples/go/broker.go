package main

const (
	me           = 1
	none         = -1
	outOfRange   = 1
	notLeader    = 6
	fenced       = 74
	unknownEpoch = 75
)

type entry struct{ epoch, start int }

// Replica is one replica of one partition that leads: it takes records, serves its followers, and promises what all of its
// ISR have.
type Replica struct {
	log                           []int // the leader epoch of each record
	cache                         []entry
	hw                            int
	leader, epoch, partitionEpoch int
	isr                           []int
	proposed                      int // the peer that is to join the ISR: it counts before the controller has agreed
	epochStart                    int
	ends                          map[int]int // the log ends that followers have shown
	enough                        int
}

func newReplica(peers, minInsyncReplicas int) *Replica {
	return &Replica{leader: none, epoch: none, partitionEpoch: none, proposed: none, ends: map[int]int{},
		enough: min(minInsyncReplicas, 1+peers)}
}

func (r *Replica) metadata(leader, leaderEpoch, partitionEpoch int, isr []int) {
	known := r.leader == me && leaderEpoch == r.epoch && partitionEpoch == r.partitionEpoch
	if partitionEpoch < r.partitionEpoch || known {
		return
	}
	// In another epoch a follower may have truncated: what it once had says nothing any more.
	if leaderEpoch > r.epoch {
		r.ends, r.epochStart = map[int]int{}, len(r.log)
		if leader == me {
			r.begin(leaderEpoch)
		}
	}
	r.leader, r.epoch, r.partitionEpoch, r.isr, r.proposed = leader, leaderEpoch, partitionEpoch, isr, none
	r.promise()
}

func (r *Replica) begin(epoch int) {
	if n := len(r.cache); n > 0 && r.cache[n-1].epoch == epoch {
		return
	}
	kept := []entry{}
	for _, e := range r.cache {
		if e.start < len(r.log) {
			kept = append(kept, e)
		}
	}
	r.cache = append(kept, entry{epoch, len(r.log)})
}

func (r *Replica) promise() {
	if r.leader != me || len(r.isr) < r.enough {
		return
	}
	lowest := len(r.log)
	for _, peer := range append([]int{r.proposed}, r.isr...) {
		if peer == me || peer == none {
			continue
		}
		end, seen := r.ends[peer]
		if !seen {
			end = none
		}
		lowest = min(lowest, end)
	}
	r.hw = max(r.hw, lowest)
}

func (r *Replica) append() result {
	if r.leader != me {
		return result{"error": notLeader}
	}
	r.begin(r.epoch)
	r.log = append(r.log, r.epoch)
	r.promise()
	return result{"error": 0, "base": len(r.log) - 1}
}

func (r *Replica) endOf(epoch int) (int, int) {
	if n := len(r.cache); n == 0 || epoch > r.cache[n-1].epoch {
		return none, none
	}
	if epoch < r.cache[0].epoch {
		return epoch, r.cache[0].start
	}
	known, end := none, len(r.log)
	for _, e := range r.cache {
		if e.epoch > epoch {
			end = e.start
			break
		}
		known = e.epoch
	}
	return known, end
}

func (r *Replica) fetch(peer, currentLeaderEpoch, offset, lastFetchedEpoch int, mayJoin bool) result {
	switch {
	// A peer that knows no epoch sends -1, which is not compared.
	case currentLeaderEpoch != none && currentLeaderEpoch < r.epoch:
		return result{"error": fenced}
	case currentLeaderEpoch > r.epoch:
		return result{"error": unknownEpoch}
	case r.leader != me:
		return result{"error": notLeader}
	case offset < 0:
		return result{"error": outOfRange}
	}
	response := result{"error": 0, "hw": r.hw, "log_start": 0, "records": [][3]int{}, "diverging": nil}
	if lastFetchedEpoch != none {
		epoch, end := r.endOf(lastFetchedEpoch)
		if epoch == none {
			return result{"error": outOfRange}
		}
		if epoch < lastFetchedEpoch || end < offset {
			response["diverging"] = [2]int{epoch, end}
			return response
		}
	}
	if offset > len(r.log) {
		return result{"error": outOfRange}
	}
	before, seen := r.ends[peer]
	r.ends[peer] = offset
	if mayJoin && offset >= max(r.hw, r.epochStart) && r.proposed == none && !r.inSync(peer) {
		r.proposed = peer
	}
	if !seen || before != offset {
		r.promise()
	}
	if offset < len(r.log) {
		response["records"] = [][3]int{{offset, offset, r.log[offset]}}
	}
	return response
}

func (r *Replica) inSync(peer int) bool {
	for _, member := range r.isr {
		if member == peer {
			return true
		}
	}
	return false
}
