// A small broker behind the drive contract (docs/drive.md): go build, then tidegauge drive -- ./broker
package main

import (
	"encoding/json"
	"os"
)

// Step is any line that is read; encoding/json finds a field without a tag by its name.
type Step struct {
	P, Leader, Peer, Error, HW int
	Step                       string
	Peers, ISR                 []int
	Records                    [][3]int
	Diverging, Offsets         *[2]int
	MinISR                     int  `json:"min_insync_replicas"`
	LeaderEpoch                int  `json:"leader_epoch"`
	PartitionEpoch             int  `json:"partition_epoch"`
	CurrentLeaderEpoch         int  `json:"current_leader_epoch"`
	FetchOffset                int  `json:"fetch_offset"`
	LastFetchedEpoch           int  `json:"last_fetched_epoch"`
	LogEnd                     int  `json:"log_end"`
	MayJoin                    bool `json:"may_join"`
}

type object map[string]any

// The steps that it supports. Each returns the response to its request, nil without a request.
var steps = map[string]func(*Broker, Step) any{
	"metadata": (*Broker).metadata, "append": (*Broker).append, "fetch": (*Broker).fetch,
	"offsets_for_leader_epoch": (*Broker).offsetsForLeaderEpoch, "fetch_response": (*Broker).fetchResponse,
	"lose_response": (*Broker).loseResponse, "lag": (*Broker).lag,
	"alter_partition_response": (*Broker).alterPartitionResponse, "stop": (*Broker).stop, "crash": (*Broker).crash,
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	can := []string{"lag_apart", "lose_tail"}
	for name := range steps {
		can = append(can, name)
	}
	reports := []string{"result", "requests", "proposal", "leo", "hw", "ends"}
	out.Encode(object{"contract": 1, "name": "go", "can": can, "reports": reports})
	in.Decode(&object{}) // the driver's handshake
	brokers := map[int]*Broker{}
	for {
		var s Step
		if in.Decode(&s) != nil {
			return
		}
		var result any
		switch s.Step {
		case "close":
			delete(brokers, s.P)
			continue
		case "open":
			brokers[s.P] = &Broker{replicas: 1 + len(s.Peers), minISR: s.MinISR, heard: -1, process: started()}
		default:
			result = steps[s.Step](brokers[s.P], s)
		}
		b := brokers[s.P]
		b.ask()
		out.Encode(object{"p": s.P, "result": result, "requests": b.requests, "proposal": b.inFlight,
			"leo": len(b.log), "hw": b.hw, "ends": b.allEnds()})
	}
}
