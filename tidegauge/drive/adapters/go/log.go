package main

import "slices"

func (b *Broker) lastEpoch() int {
	if n := len(b.cache); n > 0 {
		return b.cache[n-1][0]
	}
	return none
}

// LeaderEpochFileCache#endOffsetFor: the largest epoch up to this one, and where the next one starts.
func (b *Broker) endOf(epoch int) (int, int) {
	if epoch == none || epoch > b.lastEpoch() {
		return none, none
	}
	found := epoch
	for _, entry := range b.cache {
		if entry[0] > epoch {
			return found, entry[1]
		}
		found = entry[0]
	}
	return found, len(b.log)
}

func (b *Broker) allEnds() [][2]int {
	ends := make([][2]int, b.heard+1)
	for epoch := range ends {
		ends[epoch][0], ends[epoch][1] = b.endOf(epoch)
	}
	return ends
}

// LeaderEpochFileCache#assign: entries that contradict the new one go.
func (b *Broker) assign(epoch, start int) {
	if epoch != b.lastEpoch() {
		wrong := func(entry [2]int) bool { return entry[0] >= epoch || entry[1] >= start }
		b.cache = append(slices.DeleteFunc(b.cache, wrong), [2]int{epoch, start})
	}
}

// UnifiedLog#truncateTo: an epoch that starts at the new end goes, even if no record does.
func (b *Broker) truncate(end int) {
	b.log = b.log[:min(end, len(b.log))]
	b.hw = min(b.hw, len(b.log))
	b.cache = slices.DeleteFunc(b.cache, func(entry [2]int) bool { return entry[1] >= len(b.log) })
}
