"use strict";
(() => {
  const failures = JSON.parse(document.getElementById("data").textContent);
  const rules = document.getElementById("rules");
  document.querySelectorAll("[data-show]").forEach((box) => box.addEventListener("change", () => {
    rules.classList.toggle("hide-" + box.dataset.show, !box.checked);
  }));
  if (!failures.length) return;

  const tabs = document.getElementById("tabs");
  const article = document.getElementById("failure");
  let current = 0;
  let step = 0;

  const SVG = "http://www.w3.org/2000/svg";
  const colour = (epoch) => `hsl(${(205 + epoch * 137.5) % 360} 52% 42%)`;
  const make = (tag, attributes, text) => {
    const node = document.createElementNS(SVG, tag);
    for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const element = (tag, text, className) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  };
  const role = (replica) => replica.up === false ? "down"
    : replica.role === 1 ? "leader" : replica.role === 2 ? "follower" : replica.role === 0 ? "starting" : "unknown";

  const extent = (failure) => {
    let low = Infinity;
    let high = 1;
    for (const shot of [failure.before, ...failure.steps.map((s) => s.after)]) {
      for (const replica of shot.replicas) {
        if (replica.leo !== null) { low = Math.min(low, replica.start); high = Math.max(high, replica.leo); }
      }
    }
    if (low === Infinity) low = 0;
    return [low, Math.max(high, low + 1)];
  };

  const runs = (replica) => {
    if (replica.leo === null || replica.epochs === null) return null;
    const out = [];
    replica.epochs.forEach(([epoch, start], at) => {
      const end = at + 1 < replica.epochs.length ? replica.epochs[at + 1][1] : replica.leo;
      const begin = Math.max(start, replica.start);
      if (end > begin) out.push([epoch, begin, Math.min(end, replica.leo)]);
    });
    return out;
  };

  const lanes = (failure, shot, acting) => {
    const [low, high] = extent(failure);
    const left = 150, width = 760, right = 270, lane = 54, top = 26;
    const x = (offset) => left + (offset - low) / (high - low) * width;
    const svg = make("svg", { class: "lanes", viewBox: `0 0 ${left + width + right} ${top + lane * failure.nodes.length + 44}`,
      role: "img", "aria-label": "the replicas' logs" });
    const tick = Math.max(1, Math.ceil((high - low) / 20));
    for (let offset = low; offset <= high; offset += tick) {
      svg.append(make("text", { x: x(offset), y: 14, class: "soft", "text-anchor": "middle" }, String(offset)));
    }
    shot.replicas.forEach((replica, at) => {
      const y = top + at * lane;
      const node = failure.nodes[at];
      if (node === acting) svg.append(make("rect", { class: "acting", x: 0, y: y - 4, width: left + width + right, height: lane - 4, rx: 6 }));
      svg.append(make("text", { x: 8, y: y + 17, "font-weight": "700" }, "n" + node));
      svg.append(make("text", { x: 48, y: y + 17, class: "soft" }, role(replica)));
      svg.append(make("line", { class: "base", x1: left, x2: left + width, y1: y + 26, y2: y + 26 }));
      const parts = runs(replica);
      if (parts === null) {
        svg.append(make("rect", { class: "unknown", x: left, y, width: replica.leo === null ? width : Math.max(2, x(replica.leo) - left), height: 26, rx: 3 }));
        svg.append(make("text", { x: left + 8, y: y + 17, class: "soft" }, "log not known"));
      } else {
        const cells = high - low <= 40;
        for (const [epoch, begin, end] of parts) {
          const size = cells ? 1 : end - begin;
          for (let from = begin; from < end; from += size) {
            svg.append(make("rect", { class: "cell", x: x(from), y, width: Math.max(1, x(from + size) - x(from)), height: 26, fill: colour(epoch) }));
            if (x(from + size) - x(from) > 16) {
              svg.append(make("text", { class: "in", x: (x(from) + x(from + size)) / 2, y: y + 17, "text-anchor": "middle" }, (cells ? "" : "epoch ") + epoch));
            }
          }
        }
      }
      if (replica.hw !== null) {
        svg.append(make("line", { class: "hw", x1: x(replica.hw), x2: x(replica.hw), y1: y - 4, y2: y + 32 }));
        svg.append(make("text", { class: "hwtext", x: x(replica.hw) + 4, y: y + 40 }, "hw " + replica.hw));
      }
      const facts = [`leo ${replica.leo ?? "?"}`, replica.epoch !== null && replica.epoch >= 0 ? `epoch ${replica.epoch}` : "",
        replica.isr ? `isr {${replica.isr}}` : "", replica.proposed ? `wants {${replica.proposed}}` : ""].filter(Boolean);
      svg.append(make("text", { x: left + width + 12, y: y + 17 }, facts.join("  ")));
    });
    const y = top + lane * failure.nodes.length + 8;
    const registered = shot.epoch === null ? "controller: not told" :
      `controller: leader ${shot.leader === null ? "none" : "n" + shot.leader}, epoch ${shot.epoch}` + (shot.isr ? `, isr {${shot.isr}}` : "");
    svg.append(make("text", { x: 8, y, class: "soft" }, registered));
    const flying = shot.flying.map((f) => `n${f.follower}-n${f.leader}: ${f.what}`).join("   ");
    if (flying) svg.append(make("text", { x: 8, y: y + 18, class: "soft" }, "in flight  " + flying));
    return svg;
  };

  const show = () => {
    const failure = failures[current];
    [...tabs.children].forEach((tab, at) => tab.setAttribute("aria-selected", String(at === current)));
    const at = failure.steps[step - 1];
    const shot = at ? at.after : failure.before;
    article.replaceChildren();
    article.append(element("p", `${failure.rule} ${failure.level}: ${failure.sentence}`, "sentence"));
    const facts = element("dl", undefined, "facts");
    const fact = (name, value, className) => { facts.append(element("dt", name), element("dd", value, className)); };
    fact("trace", failure.trace + (failure.tp ? ` (${failure.tp})` : ""));
    if (failure.at) fact("at", failure.at, "mono");
    fact("expected", `${failure.compared} ${failure.expected}`, "exp");
    fact("actual", `${failure.compared} ${failure.actual}`, "act");
    fact("rule", `${failure.impl}; Kafka ${failure.kafka}`, "mono");
    failure.bugs.forEach((bug) => fact("looks like", bug.bug + (bug.says ? ": " + bug.says : "")));
    article.append(facts);

    const player = element("div", undefined, "player");
    const button = (label, name, move) => {
      const node = element("button", label);
      node.setAttribute("aria-label", name);
      node.addEventListener("click", () => go(move));
      player.append(node);
    };
    button("|<", "first", 0);
    button("<", "back", step - 1);
    const slider = element("input");
    Object.assign(slider, { type: "range", min: 0, max: failure.steps.length, value: step });
    slider.setAttribute("aria-label", "step");
    slider.addEventListener("input", () => go(Number(slider.value)));
    player.append(slider);
    button(">", "forward", step + 1);
    button(">|", "failing event", failure.steps.length);
    player.append(element("span", `${at ? "after event " + at.number : "before"}: arrow keys step, Home and End jump`, "hint"));
    article.append(player);
    article.append(lanes(failure, shot, at ? at.node : null));

    const list = element("ol", undefined, "steps");
    failure.steps.forEach((one, index) => {
      const item = element("li", undefined, (index + 1 === step ? "now " : "") + (index + 1 === failure.steps.length ? "bad" : ""));
      const words = element("span", one.words, "mono");
      if (one.at) words.append(element("div", one.at + (one.time ? "  " + one.time : ""), "at"));
      item.append(element("span", String(one.number), "n"), words);
      item.addEventListener("click", () => go(index + 1));
      list.append(item);
    });
    article.append(list);
    if (failure.leftOut) article.append(element("p", `${failure.leftOut.toLocaleString("en")} earlier or unrelated events not shown`, "says"));
    const now = list.querySelector(".now");
    if (now) list.scrollTop = now.offsetTop - list.offsetTop - 80;
  };

  const go = (to) => { step = Math.max(0, Math.min(failures[current].steps.length, to)); show(); };
  failures.forEach((failure, at) => {
    const tab = element("button", failure.rule);
    tab.setAttribute("role", "tab");
    tab.title = failure.trace;
    tab.addEventListener("click", () => { current = at; step = failure.steps.length; show(); });
    tabs.append(tab);
  });
  document.addEventListener("keydown", (event) => {
    if (event.target.matches && event.target.matches("input[type=checkbox]")) return;
    const moves = { ArrowLeft: step - 1, ArrowRight: step + 1, Home: 0, End: failures[current].steps.length };
    if (event.key in moves && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); go(moves[event.key]); }
  });
  step = failures[0].steps.length;
  show();
})();
