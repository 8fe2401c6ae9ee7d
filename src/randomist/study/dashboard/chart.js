"use strict";
// Small charts as SVG: lines, bands, dots, bars and cells. They are drawn as wide as there is room, and again when that changes.
const NS = "http://www.w3.org/2000/svg";
function svg(tag, attributes = {}, text) {
  const made = document.createElementNS(NS, tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}
const known = (values) => values.filter((x) => typeof x === "number" && Number.isFinite(x));
const extent = (values) => known(values).reduce(([low, high], x) => [Math.min(low, x), Math.max(high, x)], [Infinity, -Infinity]);

// Scales: from values to pixels, and the ticks to label.
function linear(low, high, start, end, room = 70) {
  const scale = (x) => start + (x - low) / (high - low) * (end - start);
  const rough = (high - low) / Math.max(2, Math.round(Math.abs(end - start) / room));
  const power = 10 ** Math.floor(Math.log10(rough)), step = power * ([1, 2, 2.5, 5, 10].find((m) => m * power >= rough) || 10);
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9 && ticks.length < 30; i++) ticks.push(i * step);
  return Object.assign(scale, { ticks, label: (x) => short(Math.abs(x) < step * 1e-6 ? 0 : x) });
}
function logarithmic(low, high, start, end) {
  const flat = linear(Math.log10(low), Math.log10(high), start, end), decades = Math.log10(high / low);
  const ticks = [];
  for (let k = Math.floor(Math.log10(low)); k <= Math.ceil(Math.log10(high)); k++) {
    for (const m of decades > 2 ? [1] : [1, 2, 5]) if (m * 10 ** k >= low * 0.999 && m * 10 ** k <= high * 1.001) ticks.push(m * 10 ** k);
  }
  const most = Math.max(2, Math.floor(Math.abs(end - start) / 55)), every = Math.ceil(ticks.length / most);
  return Object.assign((x) => flat(Math.log10(x)), { ticks: ticks.filter((_, i) => i % every === 0), label: short });
}
function temporal(low, high, start, end) {
  const scale = linear(low, high, start, end), span = high - low, room = Math.max(2, Math.floor(Math.abs(end - start) / 110));
  const ticks = Array.from({ length: room }, (_, i) => low + span * (i + 0.5) / room);
  const form = span < 172800 ? { hour: "2-digit", minute: "2-digit", ...(span < 600 ? { second: "2-digit" } : {}) } : { month: "short", day: "numeric" };
  return Object.assign((x) => scale(x), { ticks, label: (x) => new Date(x * 1000).toLocaleString([], form) });
}
function categories(names, start, end) {
  const step = (end - start) / names.length;
  return Object.assign((i) => start + (i + 0.5) * step, { ticks: names.map((_, i) => i), label: (i) => names[i], step });
}

// A chart in a box: `make(width)` gives what to draw, `read(i)` says point i, and arrow keys and the pointer go from one to the next.
const drawn = new Map();
const watcher = new ResizeObserver((entries) => entries.forEach(({ target }) => {
  const one = drawn.get(target);
  if (one && Math.abs(target.clientWidth - one.width) > 1) paint(target);
}));
function chart(box, label, make) {
  if (!drawn.has(box)) {
    const readout = element("p", "", { class: "readout", "aria-live": "polite" });
    box.after(readout);
    drawn.set(box, { readout, at: null });
    box.setAttribute("role", "img");
    box.setAttribute("tabindex", "0");
    box.addEventListener("keydown", (event) => {
      const one = drawn.get(box), step = { ArrowRight: 1, ArrowLeft: -1, ArrowUp: one.across || 1, ArrowDown: -(one.across || 1) }[event.key];
      if (step === undefined || !one.count) return;
      event.preventDefault();
      point_at(box, one.at === null ? (step > 0 ? 0 : one.count - 1) : Math.min(one.count - 1, Math.max(0, one.at + step)));
    });
    box.addEventListener("pointermove", (event) => {
      const one = drawn.get(box), place = box.getBoundingClientRect();
      if (one.count) point_at(box, one.nearest(event.clientX - place.left, event.clientY - place.top));
    });
    for (const end of ["pointerleave", "blur"]) box.addEventListener(end, () => point_at(box, null));
    watcher.observe(box);
  }
  box.setAttribute("aria-label", label);
  drawn.get(box).make = make;
  paint(box);
}
function point_at(box, i) {
  const one = drawn.get(box);
  one.at = i;
  one.readout.textContent = i === null ? one.rest || "" : one.read(i);
  one.cursor.replaceChildren(...(i === null ? [] : one.mark(i)));
}
function paint(box) {
  const one = drawn.get(box), width = box.clientWidth;
  if (!width) return;
  one.width = width;
  const picture = one.make(width);
  one.cursor = svg("g");
  const frame = svg("svg", { width, height: picture.height, viewBox: "0 0 " + width + " " + picture.height, "aria-hidden": "true" });
  frame.append(...picture.shapes, one.cursor);
  box.replaceChildren(frame);
  Object.assign(one, { count: picture.count || 0, read: picture.read, mark: picture.mark, nearest: picture.nearest, across: picture.across, rest: picture.rest });
  point_at(box, one.at !== null && one.at < one.count ? one.at : null);
}

// Axes. `left` leaves room for the labels of y.
function frame_of(width, height, y, room = 0) {
  const labels = y.ticks.map(y.label), left = 10 + 7 * labels.reduce((most, text) => Math.max(most, text.length), 1);
  return { left: Math.max(left, 30), right: width - 10, top: 8, bottom: height - 22 - room };
}
function axes(frame, x, y) {
  const shapes = [];
  for (const tick of y.ticks) {
    shapes.push(svg("line", { class: "grid", x1: frame.left, x2: frame.right, y1: y(tick), y2: y(tick) }));
    shapes.push(svg("text", { x: frame.left - 6, y: y(tick) + 4, "text-anchor": "end" }, y.label(tick)));
  }
  let end = -Infinity;
  for (const tick of x.ticks) {
    const text = String(x.label(tick)), at = Math.min(Math.max(x(tick), frame.left + 3 * text.length - 6), frame.right - 3 * text.length + 6);
    if (at - 3.5 * text.length < end + 6) continue;
    end = at + 3.5 * text.length;
    shapes.push(svg("text", { x: at, y: frame.bottom + 17, "text-anchor": "middle" }, text));
  }
  return shapes;
}
const run = (xs, ys, x, y, keep = () => true) => {  // a path with gaps where a value is not known
  let path = "", pen = "M";
  xs.forEach((at, i) => {
    if (ys[i] === null || !keep(i)) { pen = "M"; return; }
    path += pen + x(at).toFixed(1) + " " + y(ys[i]).toFixed(1);
    pen = "L";
  });
  return path;
};
const steps = (xs, ys, x, y) => {  // it stays as it is until it rises
  const first = ys.findIndex((v) => v !== null);
  return first < 0 ? "" : "M" + x(xs[first]).toFixed(1) + " " + y(ys[first]).toFixed(1) + xs.slice(first + 1).map((at, i) => "H" + x(at).toFixed(1) + "V" + y(ys[first + 1 + i]).toFixed(1)).join("");
};
function area(xs, low, high, x, y) {
  const parts = [];
  let part = [];
  const close = () => {
    if (part.length > 1) parts.push("M" + part.map((i) => x(xs[i]).toFixed(1) + " " + y(high[i]).toFixed(1)).join("L")
      + "L" + part.reverse().map((i) => x(xs[i]).toFixed(1) + " " + y(low[i]).toFixed(1)).join("L") + "Z");
    part = [];
  };
  xs.forEach((_, i) => low[i] === null || high[i] === null ? close() : part.push(i));
  close();
  return parts.join("");
}
function padded([low, high], part = 0.06) {
  if (!(low <= high)) return [0, 1];
  const pad = (high - low) * part || Math.abs(high) * 0.1 || 1;
  return [low - pad, high + pad];
}
const upright = (frame, at) => [svg("line", { class: "cursor", x1: at, x2: at, y1: frame.top, y2: frame.bottom })];
function nearest_of(places) {
  return (at) => places.reduce((best, place, i) => Math.abs(place - at) < Math.abs(places[best] - at) ? i : best, 0);
}
const RAMP = ["#440154", "#472d7b", "#3b528b", "#2c728e", "#21918c", "#28ae80", "#5ec962", "#addc30", "#fde725"].map((c) => [1, 3, 5].map((i) => parseInt(c.slice(i, i + 2), 16)));
function tint(part) {
  const at = Math.min(0.99999, Math.max(0, part)) * (RAMP.length - 1), i = Math.floor(at), f = at - i;
  return "rgb(" + RAMP[i].map((c, k) => Math.round(c + f * (RAMP[i + 1][k] - c))).join(",") + ")";
}
function spark(values, label) {
  const frame = svg("svg", { class: "spark", viewBox: "0 0 100 30", preserveAspectRatio: "none", role: "img", "aria-label": label });
  const [low, high] = extent(values), x = (i) => values.length > 1 ? 100 * i / (values.length - 1) : 50;
  const y = (v) => high > low ? 27 - 24 * (v - low) / (high - low) : 15;
  frame.append(svg("path", { d: values.length === 1 ? "M0 15L100 15" : run(values.map((_, i) => i), values, x, y) }));
  return frame;
}
