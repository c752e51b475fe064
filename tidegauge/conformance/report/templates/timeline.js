// The data of the page: a timeline put together from what its events changed, and which events a filter lets through.
const data = JSON.parse(document.getElementById("data").textContent);
const grouped = (number) => number.toLocaleString("en");
const unfolded = new Map();

const unfold = (at) => {
  if (!unfolded.has(at)) {
    const timeline = data.timelines[at];
    let state = timeline.before;
    const events = timeline.events.map(([node, name, words, where, time, changed, from], index) => {
      const before = state;
      const { replicas, ...rest } = changed;
      state = { ...state, ...rest };
      if (replicas) state.replicas = before.replicas.map((one, k) => replicas[k] ? { ...one, ...replicas[k] } : one);
      return { index, number: timeline.first + index, node, name, words, where, time, from, before, after: state };
    });
    unfolded.set(at, { ...timeline, at, events });
  }
  return unfolded.get(at);
};

const failuresOf = (timeline) => data.failures.filter((failure) => failure.timeline === timeline.at);
const failedAt = (timeline, event) => failuresOf(timeline).filter((failure) => failure.event === event.number);

const field = (event, name) => {
  const found = new RegExp(`(?:^| )${name}=(-?\\d+)(?: |$)`).exec(event.words);
  return found ? Number(found[1]) : null;
};

// An event touches an offset if it carries that record, or moves a log start, a log end or a high watermark there or over it.
const touches = (timeline, event, offset) => {
  const base = field(event, "rec_base"), end = field(event, "rec_end");
  if (base !== null && end !== null && base <= offset && offset < end) return true;
  if (["target", "div_end", "epoch_start"].some((name) => field(event, name) === offset)) return true;
  return event.after.replicas.some((after, k) => ["leo", "hw", "start"].some((name) => {
    const one = event.before.replicas[k][name], two = after[name];
    return one !== null && two !== null && Math.min(one, two) <= offset && offset < Math.max(one, two);
  }));
};

const clock = (event) => event.time.split("T").pop();

const passes = (timeline, wanted) => {
  const text = wanted.find.toLowerCase();
  const offset = wanted.offset === "" ? null : Number(wanted.offset.replaceAll(",", ""));
  const story = data.failures.filter((failure) => failure.timeline === timeline.at && failure.rule === wanted.story);
  const numbers = new Set(story.flatMap((failure) => [...failure.because, failure.event]));
  return (event) => (!wanted.node || String(event.node) === wanted.node)
    && (!wanted.kind || event.name === wanted.kind)
    && (!wanted.story || numbers.has(event.number))
    && (!text || `n${event.node} ${event.name} ${event.words} ${event.where} ${event.time}`.toLowerCase().includes(text))
    && (offset === null || touches(timeline, event, offset))
    && (!wanted.from || clock(event) >= wanted.from)
    && (!wanted.to || clock(event).slice(0, wanted.to.length) <= wanted.to);
};
