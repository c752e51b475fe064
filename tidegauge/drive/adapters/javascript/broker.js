// A toy broker as a driven program: `tidegauge drive -- node broker.js`. The replica is in replica.js.
"use strict";

const readline = require("node:readline");
const { Replica } = require("./replica.js");

const CAN = [
  "metadata", "append", "fetch", "offsets_for_leader_epoch", "fetch_response", "lose_response",
  "lag", "lag_apart", "alter_partition_response", "crash",
];
const REPORTS = ["result", "requests", "proposal", "leo", "hw", "ends"];

const replicas = new Map();

function respond(given) {
  const { p, step, ...args } = given;
  if (step === "close") {
    replicas.delete(p);
    return;
  }
  let result = null;
  if (step === "open") {
    replicas.set(p, new Replica(args.peers, args.min_insync_replicas));
  } else {
    result = replicas.get(p)[step](args) ?? null;
    replicas.get(p).ask();
  }
  console.log(JSON.stringify({ p, ...report(replicas.get(p), result) }));
}

function report(replica, result) {
  return {
    result,
    requests: Object.fromEntries(replica.requests),
    proposal: replica.inFlight,
    leo: replica.log.length,
    hw: replica.hw,
    ends: Array.from({ length: replica.highest + 1 }, (_, epoch) => replica.endOf(epoch)),
  };
}

let greeted = false;
readline.createInterface({ input: process.stdin }).on("line", (line) => {
  if (greeted) {
    respond(JSON.parse(line));
    return;
  }
  // The driver's first line: the version of the contract, its steps and fields.
  greeted = true;
  console.log(JSON.stringify({ contract: 1, name: "toy in JavaScript", can: CAN, reports: REPORTS }));
});
