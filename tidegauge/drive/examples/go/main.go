// The adapter: a line of JSON for each step, a line of JSON for each report.
package main

import (
	"bufio"
	"encoding/json"
	"os"
)

type result map[string]any

type line struct {
	P                  int    `json:"p"`
	Step               string `json:"step"`
	Peers              []int  `json:"peers"`
	MinInsyncReplicas  int    `json:"min_insync_replicas"`
	Leader             int    `json:"leader"`
	LeaderEpoch        int    `json:"leader_epoch"`
	PartitionEpoch     int    `json:"partition_epoch"`
	ISR                []int  `json:"isr"`
	Peer               int    `json:"peer"`
	CurrentLeaderEpoch int    `json:"current_leader_epoch"`
	FetchOffset        int    `json:"fetch_offset"`
	LastFetchedEpoch   int    `json:"last_fetched_epoch"`
	MayJoin            bool   `json:"may_join"`
}

func main() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<24)
	out := json.NewEncoder(os.Stdout)
	in.Scan() // the handshake of the suite
	out.Encode(result{"contract": 1, "name": "example-go", "can": []string{"metadata", "append", "fetch"},
		"reports": []string{"result", "leo", "hw"}})
	replicas := map[int]*Replica{}
	for in.Scan() {
		var l line
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			panic(err)
		}
		var answer any
		switch l.Step {
		case "open":
			replicas[l.P] = newReplica(len(l.Peers), l.MinInsyncReplicas)
		case "close":
			delete(replicas, l.P)
			continue
		case "metadata":
			replicas[l.P].metadata(l.Leader, l.LeaderEpoch, l.PartitionEpoch, l.ISR)
		case "append":
			answer = replicas[l.P].append()
		case "fetch":
			answer = replicas[l.P].fetch(l.Peer, l.CurrentLeaderEpoch, l.FetchOffset, l.LastFetchedEpoch, l.MayJoin)
		}
		r := replicas[l.P]
		out.Encode(result{"p": l.P, "result": answer, "leo": len(r.log), "hw": r.hw})
	}
}
