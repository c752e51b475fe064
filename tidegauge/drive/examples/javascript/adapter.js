// The adapter: a line of JSON for each step, a line of JSON for each report (docs/drive.md of Tidegauge).
"use strict";
const { Replica } = require(process.env.BROKER ?? "./broker.js");

const replicas = new Map();
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");

function take({ p, step, ...given }) {
  if (step === "close") return void replicas.delete(p);
  if (step === "open") replicas.set(p, new Replica(given.min_insync_replicas, given.peers));
  const replica = replicas.get(p);
  const result = step === "open" ? null : replica[step](given);
  say({ p, result, leo: replica.log.length, hw: replica.hw });
}

let greeted = false;
require("node:readline").createInterface({ input: process.stdin }).on("line", (line) => {
  if (greeted) return take(JSON.parse(line));
  greeted = true;
  say({ contract: 1, name: "example-js", can: ["metadata", "append", "fetch"], reports: ["result", "leo", "hw"] });
});
