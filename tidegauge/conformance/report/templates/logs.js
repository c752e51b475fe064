// The replicas' logs to scale: a lane per replica, the offsets of a window, a colour per leader epoch.
const SVG = "http://www.w3.org/2000/svg";
const make = (tag, attributes, text) => {
  const node = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
const roleOf = (replica) => replica.up === false ? "down"
  : { 0: "starting", 1: "leader", 2: "follower" }[replica.role] || "role ?";
const COLOURS = 8;
const colourOf = (epoch) => `epoch epoch${((epoch % COLOURS) + COLOURS) % COLOURS}`;

// The runs of one epoch in a log: [epoch, first, end]; null where the epochs are not known.
const runsOf = (replica) => {
  if (replica.leo === null || replica.epochs === null) return null;
  const out = [];
  replica.epochs.forEach(([epoch, start], at) => {
    const next = at + 1 < replica.epochs.length ? replica.epochs[at + 1][1] : replica.leo;
    const first = Math.max(start, replica.start || 0), end = Math.min(next, replica.leo);
    if (end > first) out.push([epoch, first, end]);
  });
  const [from, to] = replica.forked || [0, 0];
  return from >= to ? out : out.flatMap(([epoch, first, end]) => [
    [epoch, first, Math.min(end, from)], [null, Math.max(first, from), Math.min(end, to)], [epoch, Math.max(first, to), end],
  ].filter((run) => run[2] > run[1]));
};

const bounds = (state) => {
  const ends = state.replicas.flatMap((one) => one.leo === null ? [] : [one.start || 0, one.leo]);
  return ends.length ? [Math.min(...ends), Math.max(...ends, 1)] : [0, 1];
};

// The offsets that matter: those that the event is about, and what of the other replicas lies near.
const focus = (event, state, nodes, marked) => {
  const [lowest, highest] = bounds(state);
  if (highest - lowest <= 24) return [lowest, highest];
  const pointsOf = (one) => [one.leo, one.hw].filter((point) => point !== null);
  const acting = event ? nodes.indexOf(event.node) : -1;
  const leading = nodes.indexOf(state.leader);
  const first = acting >= 0 ? acting : Math.max(leading, 0);
  let points = pointsOf(state.replicas[first]);
  if (acting >= 0) points = [...points, ...pointsOf(event.before.replicas[acting])];
  if (marked) points = [...points, ...marked];
  if (!points.length) points = state.replicas.flatMap(pointsOf);
  if (!points.length) return [lowest, highest];
  let low = Math.min(...points), high = Math.max(...points);
  for (const point of state.replicas.flatMap(pointsOf).sort((a, b) => Math.abs(a - high) - Math.abs(b - high))) {
    const near = Math.max(40, 2 * (high - low));
    if (point >= low - near && point <= high + near) { low = Math.min(low, point); high = Math.max(high, point); }
  }
  const size = high - low;
  return [Math.max(lowest, low - Math.max(12, Math.ceil(size * .2))), high + Math.max(2, Math.ceil(size * .08))];
};

const ticks = (low, high, most) => {
  const rough = Math.max(1, (high - low) / Math.max(1, most));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = Math.max(1, [1, 2, 5, 10].map((one) => one * power).find((one) => one >= rough));
  const out = [];
  for (let at = Math.ceil(low / step) * step; at <= high; at += step) out.push(at);
  return out;
};

const described = (timeline, state) => state.replicas.map((one, k) =>
  `n${timeline.nodes[k]} ${roleOf(one)}, log end ${one.leo ?? "unknown"}, high watermark ${one.hw ?? "unknown"}`).join("; ");

const drawLogs = (svg, timeline, event, state, [low, high], marked) => {
  const whole = Math.max(280, svg.clientWidth || 800);
  const narrow = whole < 620;
  const left = narrow ? 46 : 112, right = narrow ? 14 : 196;
  const lane = narrow ? 78 : 62, top = 26, tall = 22, width = whole - left - right;
  const height = top + lane * timeline.nodes.length + 30;
  const x = (offset) => left + (Math.min(high, Math.max(low, offset)) - low) / (high - low) * width;
  svg.setAttribute("viewBox", `0 0 ${whole} ${height}`);
  svg.setAttribute("height", height);
  svg.setAttribute("aria-label", described(timeline, state));
  const parts = [];
  const add = (tag, attributes, text) => parts.push(make(tag, attributes, text));
  const acting = event ? timeline.nodes.indexOf(event.node) : -1;
  if (acting >= 0) add("rect", { class: "acting", x: 0, y: top + acting * lane - 5, width: whole, height: lane - 3, rx: 6 });
  if (marked && marked[1] > low && marked[0] < high) {
    add("rect", { class: "marked", x: x(marked[0]), y: top - 6, width: Math.max(3, x(marked[1]) - x(marked[0])), height: lane * timeline.nodes.length });
  }
  for (const offset of ticks(low, high, width / (18 + 7.4 * grouped(high).length))) {
    add("line", { class: "tick", x1: x(offset), x2: x(offset), y1: top - 6, y2: top + lane * timeline.nodes.length - 6 });
    add("text", { class: "soft", x: x(offset), y: 13, "text-anchor": "middle" }, grouped(offset));
  }
  state.replicas.forEach((replica, k) => {
    const y = top + k * lane, base = y + (narrow ? 16 : 0), node = timeline.nodes[k];
    add("text", { class: "name", x: 6, y: narrow ? y + 11 : base + 16 }, `n${node}`);
    add("text", { class: roleOf(replica) === "down" ? "down" : "soft", x: narrow ? 34 : 36, y: narrow ? y + 11 : base + 16 }, roleOf(replica));
    add("line", { class: "base", x1: left, x2: left + width, y1: base + tall, y2: base + tall });
    const runs = runsOf(replica);
    if (replica.leo === null || runs === null) {
      const end = replica.leo === null ? high : replica.leo;
      if (end > low) add("rect", { class: "unknown", x: left, y: base, width: Math.max(2, x(end) - left), height: tall, rx: 3 });
      add("text", { class: "soft", x: left + 6, y: base + 15 }, replica.leo === null ? "log unknown" : "epochs unknown");
    }
    for (const [epoch, first, end] of runs || []) {
      if (end <= low || first >= high) continue;
      const shown = [Math.max(first, low), Math.min(end, high)];
      const cell = width / (high - low);
      const size = cell >= 15 ? 1 : shown[1] - shown[0];
      for (let from = shown[0]; from < shown[1]; from += size) {
        const box = { x: x(from), y: base, width: Math.max(1, x(from + size) - x(from)), height: tall };
        add("rect", { class: epoch === null ? "unknown" : colourOf(epoch), ...box });
        const words = epoch === null ? "?" : size === 1 ? String(epoch) : box.width > 70 ? `epoch ${epoch}` : String(epoch);
        if (box.width > 6 + 7 * words.length) add("text", { class: epoch === null ? "soft" : "in", x: box.x + box.width / 2, y: base + 15.5, "text-anchor": "middle" }, words);
      }
      if (first < low) add("path", { class: "torn", d: `M${left} ${base}l4 4l-4 4l4 4l-4 4l4 4l-4 2` });
    }
    const beside = [];
    if (replica.leo !== null && replica.leo < low) add("text", { class: "soft", x: left + 4, y: base + 15 }, `\u25c2 log end ${grouped(replica.leo)}`);
    if (replica.leo !== null && (replica.start || 0) >= high) add("text", { class: "soft", x: left + width - 4, y: base + 15, "text-anchor": "end" }, `log start ${grouped(replica.start)} \u25b8`);
    if (replica.leo !== null && replica.leo > high) add("text", { class: "in", x: left + width - 6, y: base + 15.5, "text-anchor": "end" }, "\u25b8");
    if (replica.hw !== null) {
      const inside = replica.hw >= low && replica.hw <= high;
      const words = `${replica.hw < low ? "\u25c2 " : ""}hw ${grouped(replica.hw)}${replica.hw > high ? " \u25b8" : ""}`;
      if (inside) add("path", { class: "staff", d: `M${x(replica.hw)} ${base - 4}v${tall + 10}` });
      const ends = x(replica.hw) + 8 * words.length > left + width;
      add("text", { class: "hw", x: x(replica.hw) + (inside ? (ends ? -5 : 5) : 0), y: base + tall + 14, "text-anchor": ends ? "end" : "start" }, words);
    }
    beside.push(`leo ${replica.leo === null ? "?" : grouped(replica.leo)}`);
    if (replica.epoch !== null && replica.epoch >= 0) beside.push(`epoch ${replica.epoch}`);
    const also = [replica.isr ? `isr {${replica.isr}}` : "", replica.proposed ? `wants {${replica.proposed}}` : ""].filter(Boolean).join(" ");
    if (narrow) {
      const room = (whole - 52 - 7.3 * roleOf(replica).length) / 7.3;
      const words = [[...beside, also].filter(Boolean), beside, beside.slice(0, 1)].map((some) => some.join("  "));
      add("text", { class: "facts", x: whole - 4, y: y + 11, "text-anchor": "end" }, words.find((some) => some.length <= room) || "");
    }
    else {
      add("text", { class: "facts", x: left + width + 14, y: base + 10 }, beside.join("  "));
      add("text", { class: "soft", x: left + width + 14, y: base + 27 }, also);
    }
  });
  const y = top + lane * timeline.nodes.length + 10;
  const registered = state.epoch === null ? "controller: not heard"
    : `controller: leader ${state.leader === null ? "none" : "n" + state.leader}, epoch ${state.epoch}${state.isr ? `, isr {${state.isr}}` : ""}`;
  add("text", { class: "soft", x: 6, y }, registered);
  svg.replaceChildren(...parts);
};
