// The viewer: where it stands, its controls, the list of events, and the link that brings one back here.
const by = (id) => document.getElementById(id);
const element = (tag, className, text) => {
  const node = document.createElement(tag);
  if (className) node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
};
const EMPTY = { find: "", node: "", kind: "", story: "", offset: "", from: "", to: "" };
const form = by("filter");
const list = by("events");
const rows = new Map();
const stands = { timeline: null, shown: [], at: -1, failure: null, window: null, byHand: false, wanted: { ...EMPTY } };

const eventNow = () => stands.at < 0 ? null : stands.timeline.events[stands.at];
const stateNow = () => stands.at < 0 ? stands.timeline.before : eventNow().after;
const marked = () => stands.failure && stands.failure.timeline === stands.timeline.at ? stands.failure.between : null;

// Where among the shown events we stand: 0 is in front of all of them.
const position = () => {
  let low = 0, high = stands.shown.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (stands.shown[middle] <= stands.at) low = middle + 1; else high = middle;
  }
  return low;
};

const look = () => {
  const event = eventNow(), state = stateNow();
  const near = marked() && stands.failure && Math.abs(stands.failure.event - (event ? event.number : 0)) <= 20 ? marked() : null;
  if (!stands.byHand) {
    const [low, high] = focus(event, state, stands.timeline.nodes, near);
    const own = stands.window;
    const fits = own && own[0] <= low && high <= own[1] && own[1] - own[0] <= 2 * (high - low) + 8;
    if (!fits) stands.window = [low, Math.max(high, low + 1)];
  }
};

const sayNow = () => {
  const event = eventNow();
  if (!event) return [element("p", "soft", `Before event ${grouped(stands.timeline.first)}: what is known when the run begins.`)];
  const head = element("p", "what");
  head.append(element("b", "", `n${event.node} ${event.name}`));
  const bad = failedAt(stands.timeline, event);
  for (const failure of bad) head.append(" ", element("span", "fails", `${failure.rule} fails`));
  const words = element("p", "mono");
  for (const word of event.words.split(" ").filter(Boolean)) words.append(element("span", "field", word), " ");
  const where = element("p", "soft", [event.where, event.time.replace("T", " ")].filter(Boolean).join("   "));
  if (event.from !== null && event.from !== undefined) {
    const source = stands.timeline.events[event.from];
    const link = element("a", "", `${grouped(source.number)} (n${source.node} ${source.name})`);
    link.href = linkTo({ event: source.number });
    where.append("   comes of ", link);
  }
  const flying = event.after.flying.map(([follower, leader, what]) => `n${follower}-n${leader} ${what}`).join(", ");
  const out = [head, words, where];
  if (flying) out.push(element("p", "soft", `in flight: ${flying}`));
  return out;
};

const rowHeight = () => matchMedia("(max-width: 640px)").matches ? 50 : 30;

const drawList = () => {
  const height = rowHeight();
  by("spacer").style.height = `${stands.shown.length * height}px`;
  const first = Math.max(0, Math.floor(list.scrollTop / height) - 6);
  const end = Math.min(stands.shown.length, Math.ceil((list.scrollTop + list.clientHeight) / height) + 6);
  const wanted = new Set();
  for (let place = first; place < end; place += 1) {
    const event = stands.timeline.events[stands.shown[place]];
    wanted.add(event.index);
    let row = rows.get(event.index);
    if (!row) {
      row = element("div");
      row.id = `row${event.index}`;
      row.setAttribute("role", "option");
      row.append(element("span", "n", grouped(event.number)), element("span", "t", clock(event).slice(0, 12)), element("span", "w", `n${event.node} ${event.name} ${event.words}`), element("span", "f", event.where.split("/").slice(-2).join("/")));
      row.title = event.where;
      row.addEventListener("click", () => go(event.index));
      rows.set(event.index, row);
      by("spacer").append(row);
    }
    row.className = `event${event.index === stands.at ? " here" : ""}${failedAt(stands.timeline, event).length ? " bad" : ""}`;
    row.setAttribute("aria-selected", String(event.index === stands.at));
    row.setAttribute("aria-posinset", place + 1);
    row.setAttribute("aria-setsize", stands.shown.length);
    row.style.transform = `translateY(${place * height}px)`;
  }
  for (const [index, row] of rows) if (!wanted.has(index)) { row.remove(); rows.delete(index); }
  if (rows.has(stands.at)) list.setAttribute("aria-activedescendant", `row${stands.at}`); else list.removeAttribute("aria-activedescendant");
};

const scrollToNow = () => {
  const height = rowHeight(), top = (position() - 1) * height;
  if (top < list.scrollTop || top + height > list.scrollTop + list.clientHeight) list.scrollTop = Math.max(0, top - list.clientHeight / 2);
};

const draw = () => {
  const { timeline, shown } = stands;
  look();
  by("place").textContent = `${stands.at < 0 ? "before" : "after"} event ${grouped(stands.at < 0 ? timeline.first : eventNow().number)} of ${grouped(timeline.total)}`;
  by("slider").max = shown.length;
  by("slider").value = position();
  by("slider").setAttribute("aria-valuetext", by("place").textContent);
  if (by("now").contains(document.activeElement)) list.focus({ preventScroll: true });
  by("now").replaceChildren(...sayNow());
  drawLogs(by("logs"), timeline, eventNow(), stateNow(), stands.window, marked());
  drawMessages(by("messages"), by("legend"), timeline, eventNow(), go);
  by("count").textContent = shown.length === timeline.events.length ? `${grouped(shown.length)} events` : `${grouped(shown.length)} of ${grouped(timeline.events.length)} events`;
  drawList();
};

const go = (index) => {
  stands.at = Math.max(-1, Math.min(stands.timeline.events.length - 1, index));
  scrollToNow();
  draw();
  remember();
};
const step = (to) => go(to <= 0 ? -1 : stands.shown[Math.min(stands.shown.length, to) - 1] ?? stands.at);

const sift = () => {
  const passing = passes(stands.timeline, stands.wanted);
  stands.shown = stands.timeline.events.filter(passing).map((event) => event.index);
  for (const row of rows.values()) row.remove();
  rows.clear();
  by("spacer").style.height = `${stands.shown.length * rowHeight()}px`;
};

const options = (select, first, values, chosen) => {
  select.replaceChildren(new Option(first, ""), ...values.map(([value, text]) => new Option(text, value)));
  select.value = values.some(([value]) => value === chosen) ? chosen : "";
};

const open = (at) => {
  const timeline = stands.timeline = unfold(at);
  Object.assign(stands, { window: null, byHand: false, at: -1 });
  by("timeline").value = String(at);
  const nodes = [...timeline.nodes, timeline.controller].filter((node, k, all) => node !== null && all.indexOf(node) === k);
  options(form.node, "any", nodes.map((node) => [String(node), `n${node}`]), stands.wanted.node);
  options(form.kind, "any", [...new Set(timeline.events.map((event) => event.name))].sort().map((name) => [name, name]), stands.wanted.kind);
  options(form.story, "all", [...new Set(failuresOf(timeline).map((failure) => failure.rule))].map((rule) => [rule, rule]), stands.wanted.story);
  for (const name of ["node", "kind", "story"]) stands.wanted[name] = form[name].value;
  for (const name of ["find", "offset", "from", "to"]) form[name].value = stands.wanted[name];
  const more = timeline.total - timeline.events.length;
  by("partly").textContent = more <= 0 ? "" : `This page holds events ${grouped(timeline.first)} to ${grouped(timeline.first + timeline.events.length - 1)} of ${grouped(timeline.total)}.`;
  sift();
};

const linkTo = (changes) => {
  const event = eventNow();
  const says = { trace: stands.timeline.trace, event: event ? event.number : "", rule: stands.failure ? stands.failure.rule : "", ...stands.wanted, ...changes };
  return `#${new URLSearchParams(Object.entries(says).filter(([, value]) => value !== ""))}`;
};
const remember = () => { try { history.replaceState(null, "", linkTo({})); } catch { /* some viewers of files forbid it */ } };

const choose = (failure) => {
  stands.failure = failure;
  document.querySelectorAll("details.failure").forEach((card) => card.classList.toggle("chosen", data.failures[card.dataset.failure] === failure));
};

// A link: #trace=..&event=..&rule=.., and the words of the filter.
const follow = () => {
  const says = new URLSearchParams(location.hash.slice(1));
  const rule = says.get("rule"), trace = says.get("trace"), number = Number(says.get("event"));
  const holds = (timeline) => !number || (number >= timeline.first && number < timeline.first + timeline.events.length);
  const failure = data.failures.find((one) => one.rule === rule && (!trace || data.timelines[one.timeline].trace === trace)) || null;
  let at = data.timelines.findIndex((timeline) => timeline.trace === trace && holds(timeline));
  if (at < 0) at = failure ? failure.timeline : 0;
  Object.keys(EMPTY).forEach((name) => { stands.wanted[name] = says.get(name) || ""; });
  if (Object.values(stands.wanted).some(Boolean)) by("filters").open = true;
  open(at);
  choose(failure);
  if (failure) document.querySelectorAll("details.failure").forEach((card) => { card.open = card.classList.contains("chosen"); });
  const wanted = number || (failure && failure.timeline === at ? failure.event : 0);
  stands.at = wanted && holds({ ...stands.timeline }) ? wanted - stands.timeline.first : -1;
  if (stands.at >= stands.timeline.events.length) stands.at = -1;
  scrollToNow();
  draw();
};

const zoom = (factor, shift = 0) => {
  const [low, high] = stands.window, size = Math.max(4, (high - low) * factor), middle = (low + high) / 2 + (high - low) * shift;
  const begin = Math.max(0, Math.round(middle - size / 2));
  Object.assign(stands, { byHand: true, window: [begin, begin + Math.round(size)] });
  draw();
};

const listen = () => {
  by("first").addEventListener("click", () => step(0));
  by("back").addEventListener("click", () => step(position() - 1));
  by("forward").addEventListener("click", () => step(position() + 1));
  by("last").addEventListener("click", () => step(stands.shown.length));
  by("slider").addEventListener("input", () => step(Number(by("slider").value)));
  by("left").addEventListener("click", () => zoom(1, -.5));
  by("right").addEventListener("click", () => zoom(1, .5));
  by("in").addEventListener("click", () => zoom(.5));
  by("out").addEventListener("click", () => zoom(2));
  by("fit").addEventListener("click", () => { Object.assign(stands, { byHand: false, window: null }); draw(); });
  by("whole").addEventListener("click", () => { Object.assign(stands, { byHand: true, window: bounds(stateNow()) }); draw(); });
  by("timeline").addEventListener("change", () => { choose(null); open(Number(by("timeline").value)); go(stands.timeline.events.length - 1); });
  list.addEventListener("scroll", drawList, { passive: true });
  const filtered = () => {
    for (const name of Object.keys(EMPTY)) stands.wanted[name] = form[name].value.trim();
    sift();
    scrollToNow();
    draw();
    remember();
  };
  form.addEventListener("input", filtered);
  form.addEventListener("reset", () => setTimeout(filtered));
  form.addEventListener("submit", (event) => { event.preventDefault(); step(position() + 1); });
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea, summary")) return;
    const steps = { ArrowLeft: position() - 1, ArrowRight: position() + 1, Home: 0, End: stands.shown.length };
    if (event.target === list) Object.assign(steps, { ArrowUp: position() - 1, ArrowDown: position() + 1, PageUp: position() - 10, PageDown: position() + 10 });
    if (event.key in steps) { event.preventDefault(); step(steps[event.key]); }
    if (event.key === "+" || event.key === "-") zoom(event.key === "+" ? .5 : 2);
  });
  let grip = null;
  by("logs").addEventListener("pointerdown", (event) => { grip = [event.clientX, ...stands.window]; by("logs").setPointerCapture(event.pointerId); });
  by("logs").addEventListener("pointermove", (event) => {
    if (!grip) return;
    const by_ = Math.round((grip[0] - event.clientX) / by("logs").clientWidth * (grip[2] - grip[1]));
    if (by_ === 0) return;
    const begin = Math.max(0, grip[1] + by_);
    Object.assign(stands, { byHand: true, window: [begin, begin + grip[2] - grip[1]] });
    drawLogs(by("logs"), stands.timeline, eventNow(), stateNow(), stands.window, marked());
  });
  for (const name of ["pointerup", "pointercancel"]) by("logs").addEventListener(name, () => { grip = null; });
  // not on "toggle", which a card that is open from the start fires, too: it would lead away from what a link asks for
  document.querySelectorAll("details.failure > summary").forEach((summary) => summary.addEventListener("click", (event) => {
    const failure = data.failures[summary.parentElement.dataset.failure];
    if (failure === stands.failure) return;
    if (summary.parentElement.open) event.preventDefault();
    choose(failure);
    if (stands.timeline.at !== failure.timeline) open(failure.timeline);
    go(failure.event - stands.timeline.first);
  }));
  document.querySelectorAll(".said a").forEach((link) => link.addEventListener("click", () => {
    if (by("viewer").getBoundingClientRect().top > innerHeight * .6) by("viewer").scrollIntoView();
  }));
  addEventListener("hashchange", follow);
  let width = innerWidth;
  new ResizeObserver(() => { if (innerWidth !== width) { width = innerWidth; draw(); } }).observe(document.body);
};

document.querySelectorAll("[data-show]").forEach((box) => box.addEventListener("change", () => {
  by("rules").classList.toggle(`hide-${box.dataset.show}`, !box.checked);
}));
if (data.timelines.length) {
  by("viewer").hidden = false;
  by("timeline").replaceChildren(...data.timelines.map((timeline, at) => {
    const bad = data.failures.some((failure) => failure.timeline === at);
    const part = timeline.events.length < timeline.total ? `${grouped(timeline.events.length)} of ` : "";
    const name = timeline.tp && !timeline.trace.includes(timeline.tp) ? `${timeline.trace} (${timeline.tp})` : timeline.trace;
    return new Option(`${name}: ${part}${grouped(timeline.total)} events${bad ? ", broken" : ""}`, String(at));
  }));
  listen();
  if (location.hash.length > 1) follow();
  else {
    const failure = data.failures[0] || null;
    open(failure ? failure.timeline : 0);
    choose(failure);
    go(failure ? failure.event - stands.timeline.first : stands.timeline.events.length - 1);
  }
}
