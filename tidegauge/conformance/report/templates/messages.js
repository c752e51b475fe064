// The events around one, a lane per node, and the messages between them as arrows.
const LETTERS = {
  SendFetch: ["s", "sends a fetch"], HandleFetch: ["h", "handles it"], AnswerFetch: ["a", "answers it later"],
  HandleFetchResponse: ["r", "takes the response"], HandleDivergingResponse: ["T", "truncates"], HandleEpochResponse: ["T", "truncates"],
  HandleOutOfRange: ["T", "truncates"], TruncateToHighWatermark: ["T", "truncates"], HandleFetchError: ["!", "gets an error"],
  SendEpochRequest: ["q", "asks for an epoch's end"], HandleEpochRequest: ["h", "handles it"], LeaderAppend: ["+", "appends"],
  BecomeLeader: ["L", "leads"], BecomeFollower: ["F", "follows"], ExpandIsr: ["i", "proposes an ISR"], ShrinkIsr: ["i", "proposes an ISR"],
  AlterPartition: ["p", "judges a proposal"], HandleAlterPartitionResponse: ["r", "takes the response"], ChangePartition: ["C", "registers"],
  Start: ["^", "starts"], Stop: ["x", "stops"], Crash: ["X", "crashes"], LogStartMoved: ["d", "deletes"], EpochCacheEntry: ["e", "new epoch"],
  HwCheckpoint: ["k", "checkpoint"], Observe: ["o", "is observed"], ProduceAck: ["A", "acknowledges"], Read: ["c", "is read"],
};

const drawMessages = (svg, legend, timeline, now, go) => {
  const whole = Math.max(280, svg.clientWidth || 800);
  const lanes = [...(timeline.controller === null || timeline.nodes.includes(timeline.controller) ? [] : [timeline.controller]), ...timeline.nodes];
  const left = 46, gap = 27, lane = 38, top = 20;
  const room = Math.max(6, Math.floor((whole - left - 14) / gap));
  const here = now ? now.index : 0;
  const first = Math.max(0, Math.min(timeline.events.length - room, here - Math.floor(room * .62)));
  const shown = timeline.events.slice(first, first + room);
  const x = (index) => left + (index - first) * gap + gap / 2;
  const y = (node) => top + Math.max(0, lanes.indexOf(node)) * lane + 14;
  const height = top + lanes.length * lane + 8;
  svg.setAttribute("viewBox", `0 0 ${whole} ${height}`);
  svg.setAttribute("height", height);
  const parts = [make("defs")];
  const tip = make("marker", { id: "tip", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" });
  tip.append(make("path", { d: "M0 0L8 4L0 8z", class: "tip" }));
  parts[0].append(tip);
  lanes.forEach((node) => {
    parts.push(make("line", { class: "base", x1: left - 6, x2: whole - 6, y1: y(node), y2: y(node) }));
    parts.push(make("text", { class: "name", x: 6, y: y(node) + 4 }, `n${node}`));
  });
  if (now) parts.push(make("rect", { class: "acting", x: x(here) - gap / 2, y: 2, width: gap, height: height - 8, rx: 5 }));
  for (const event of shown) {
    if (event.from === null || event.from === undefined) continue;
    const source = timeline.events[event.from];
    const inside = event.from >= first;
    const [x1, y1, x2, y2] = [inside ? x(event.from) : left - 8, y(source.node), x(event.index), y(event.node)];
    const long = Math.hypot(x2 - x1, y2 - y1) || 1;
    const trim = (part) => part * 11 / long;
    parts.push(make("line", { class: `arrow${now && (event.index === here || event.from === here) ? " of" : ""}`,
      x1: x1 + (inside ? trim(x2 - x1) : 0), y1: y1 + (inside ? trim(y2 - y1) : 0), x2: x2 - trim(x2 - x1), y2: y2 - trim(y2 - y1), "marker-end": "url(#tip)" }));
  }
  const letters = new Map();
  for (const event of shown) {
    const [letter, says] = LETTERS[event.name] || ["?", event.name];
    letters.set(letter, says);
    const bad = failedAt(timeline, event).map((failure) => failure.rule);
    const group = make("g", { class: `event${bad.length ? " bad" : ""}${event.index === here && now ? " here" : ""}` });
    group.append(make("title", {}, `${event.number}: n${event.node} ${event.name} ${event.words}${bad.length ? ` (${bad.join(", ")} fails)` : ""}`));
    group.append(make("rect", { class: "touch", x: x(event.index) - gap / 2, y: y(event.node) - lane / 2, width: gap, height: lane }));
    group.append(make("circle", { cx: x(event.index), cy: y(event.node), r: 10 }));
    group.append(make("text", { x: x(event.index), y: y(event.node) + 4, "text-anchor": "middle" }, letter));
    group.addEventListener("click", () => go(event.index));
    parts.push(group);
  }
  if (now) parts.push(make("text", { class: "soft", x: x(here), y: 12, "text-anchor": "middle" }, grouped(now.number)));
  svg.replaceChildren(...parts);
  legend.textContent = [...letters].map(([letter, says]) => `${letter} ${says}`).join(" \u00b7 ");
};
