"use strict";
// The pictures of one study: payoffs over time, policies of a finite set, slices of a box.
function panel(id, title) {
  let section = byId(id + "-panel");
  if (!section) {
    section = element("section", null, { id: id + "-panel", "aria-labelledby": id + "-title" });
    const top = element("div", null, { class: "beside" }, element("h2", title, { id: id + "-title" }));
    section.append(top, element("p", null, { class: "soft", id: id + "-hint" }));
    byId("panels").append(section);
  }
  return section;
}
const key = (kind, text) => element("span", text, { class: "key " + kind });
const hint = (id, ...parts) => byId(id + "-hint").replaceChildren(...parts);
function plot(id, parent) {
  let box = byId(id);
  if (!box) {
    box = element("div", null, { id, class: "plot" });
    parent.append(box);
  }
  return box;
}
function numbers(parent, id, head, rows) {  // the same as a table, made when somebody wants it
  let box = byId(id);
  if (!box) {
    box = element("details", null, { id }, element("summary", "Numbers"), element("table"));
    box.addEventListener("toggle", () => box.fill());
    parent.append(box);
  }
  box.fill = () => { if (box.open) table(box.querySelector("table"), head.map((name, i) => ({ name, kind: i ? "number" : "", first: !i })), rows().map((cells) => ({ cells })), "Nothing yet."); };
  box.fill();
}

// Payoffs. Of a long study, dots stand for a fiftieth of the tells each: means of a few would be noise.
function grouped(p) {
  const n = p.x.length, by = p.size > 1 ? Math.ceil(n / 50) : 1, groups = { end: [], mean: [], least: [], largest: [] };
  for (let i = 0; i < n; i += by) {
    const end = Math.min(i + by, n), tells = (k) => p.x[k] - (k ? p.x[k - 1] : 0);
    let total = 0, count = 0;
    for (let k = i; k < end; k++) if (p.mean[k] !== null) { total += p.mean[k] * tells(k); count += tells(k); }
    const [least, largest] = [extent(p.least.slice(i, end))[0], extent(p.largest.slice(i, end))[1]];
    groups.end.push(end - 1);
    groups.mean.push(count ? total / count : null);
    groups.least.push(count ? least : null);
    groups.largest.push(count ? largest : null);
  }
  return groups;
}
let against = "tells";
function payoffs(p, counts) {
  const section = panel("payoffs", "Payoffs");
  if (!byId("against")) {
    const select = element("select", null, { id: "against" }, element("option", "tells", { value: "tells" }), element("option", "time", { value: "time" }));
    select.addEventListener("change", () => { against = select.value; payoffs(shown.payoffs, shown.counts); });
    section.firstChild.append(element("label", "Against ", { class: "soft" }, select));
  }
  hint("payoffs", key("warm", "best so far"), key("", "average so far"), key("dots", p.size > 1 ? "means of consecutive tells" : "payoffs"),
    ...(p.size > 1 ? [key("area", "least to largest of them")] : []));
  const last = p.x.length - 1;
  const label = last < 0 ? "Payoffs: nothing told yet" : "Payoffs of " + whole(p.x[last]) + " tells: best " + short(p.best[last]) + ", average " + short(p.average[last]);
  const xs = against === "time" ? p.at : p.x, g = grouped(p), some = g.end.map((i) => xs[i]);
  chart(plot("payoffs", section), label, (width) => {
    const height = width < 500 ? 220 : 280;
    const [low, high] = padded(extent([...p.least, ...p.largest])), rough = linear(low, high, height - 22, 8, 50);
    const frame = frame_of(width, height, rough), y = linear(low, high, frame.bottom, frame.top, 50);
    const [a, b] = last < 0 ? [0, 1] : [xs[0], Math.max(xs[last], xs[0] + 1)];
    const x = (against === "time" ? temporal : linear)(a, b, frame.left, frame.right);
    if (last < 0) return { height, shapes: axes(frame, Object.assign(x, { ticks: [] }), y), rest: "Nothing was told yet." };
    const places = xs.map((at) => x(at));
    const dots = g.mean.map((v, i) => v === null ? null : svg("circle", { class: "dot", cx: x(some[i]).toFixed(1), cy: y(v).toFixed(1), r: 2 })).filter(Boolean);
    const shapes = [...axes(frame, x, y), svg("path", { class: "band", d: p.size > 1 ? area(some, g.least, g.largest, x, y) : "" }), ...dots,
      svg("path", { class: "line", d: run(xs, p.average, x, y) }), svg("path", { class: "line warm", d: steps(xs, p.best, x, y) })];
    return { height, shapes, count: p.x.length, nearest: nearest_of(places), mark: (i) => upright(frame, places[i]),
      read: (i) => "after " + whole(p.x[i]) + " tells, " + moment(p.at[i]) + ": " + (p.size > 1 ? "mean " : "payoff ") + short(p.mean[i]) + ", average " + short(p.average[i]) + ", best " + short(p.best[i]),
      rest: "Point at it, or use the arrow keys, to read numbers." };
  });
  numbers(section, "payoffs-numbers", ["tells", "when", "mean", "least", "largest", "average so far", "best so far"], () => {
    const every = Math.ceil(p.x.length / 40) || 1;
    return p.x.map((_, i) => i).filter((i) => (last - i) % every === 0).reverse()
      .map((i) => [whole(p.x[i]), moment(p.at[i]), ...[p.mean, p.least, p.largest, p.average, p.best].map((column) => short(column[i]))]);
  });
}

// A finite set: a line for each policy.
let all = false;
const FEW = matchMedia("(max-width: 46rem)").matches ? 8 : 15;
const policy = (k) => shown.finite.name ? shown.finite.name[shown.finite.decision.indexOf(k)] ?? "policy " + k : "policy " + k;
function finite(f) {
  const section = panel("policies", "Policies");
  const sure = f.low.some((x) => x !== null), level = Math.round(100 * f.level) + "%";
  const left = f.possible.filter(Boolean).length, active = f.active.filter(Boolean).length;
  hint("policies", ...(f.of > f.decision.length ? ["The best and the most played " + f.decision.length + " of " + whole(f.of) + ". "] : []),
    ...(sure ? ["Dot: the estimated payoff. Line: where the mean payoff lies; all lines hold together, at every look, with " + level + ". ",
      left < active ? left + " of " + active + " may still be best." : active > 1 ? "All may still be best." : ""]
      : ["Dot: the estimated payoff. No intervals: " + (f.without || "nothing is known yet").split(";")[0] + "."]));
  const order = f.decision.map((_, i) => i).sort((i, j) => f.active[j] - f.active[i] || (f.value[j] ?? -Infinity) - (f.value[i] ?? -Infinity));
  const [low, high] = padded(extent([...f.value, ...f.low, ...f.high]), 0.02);
  const place = (x) => (100 * (x - low) / (high - low)).toFixed(2) + "%";
  const [a, b] = extent([...f.value, ...f.low, ...f.high]);
  const columns = [{ name: "policy", first: true }, { name: "payoff", kind: "reach", label: false, below: element("span", null, { class: "ends", "aria-hidden": "true" },
    element("span", a <= b ? short(a) : ""), element("span", a <= b ? short(b) : "")) }, { name: "estimate", kind: "number" },
    ...(sure ? [{ name: level + " interval", kind: "number", label: level }] : []), { name: "plays", kind: "number" }, { name: "worth in plays", kind: "number" }, { name: "not seen", kind: "number" }];
  const rows = order.slice(0, all ? undefined : FEW).map((i) => {
    const name = element("span", policy(f.decision[i]));
    if (f.point) name.append(element("span", " at " + point(f.point[i].length === 1 ? f.point[i][0] : f.point[i]), { class: "tag" }));
    if (sure && f.active[i] && !f.possible[i]) name.append(element("span", " ruled out", { class: "tag" }));
    const range = element("div", null, { class: "range", "aria-hidden": "true" });
    if (f.low[i] !== null) {
      const bar = element("i");
      bar.style.left = place(f.low[i]);
      bar.style.right = (100 - parseFloat(place(f.high[i]))).toFixed(2) + "%";
      range.append(bar);
    }
    if (f.value[i] !== null) {
      const dot = element("b");
      dot.style.left = place(f.value[i]);
      range.append(dot);
    }
    return { kind: !f.active[i] || (sure && !f.possible[i]) ? "out" : "", cells: [name, range, short(f.value[i]), ...(sure ? [between({ low: f.low[i], high: f.high[i] })] : []),
      whole(f.plays[i]), short(f.effective_samples[i]), f.missing[i] === null ? "–" : Math.round(100 * f.missing[i]) + "%"] };
  });
  let box = byId("policies");
  if (!box) {
    box = element("table", null, { id: "policies" }, element("caption", "Policies, the best estimate first", { class: "unseen" }));
    const button = element("button", null, { type: "button", id: "policies-all" });
    button.addEventListener("click", () => { all = !all; finite(shown.finite); });
    section.append(box, element("p", null, {}, button), element("p", "Worth in plays: how many plays of the policy the whole history is worth, all others' included. Not seen: the part of what the policy does that the history says nothing about.", { class: "soft" }));
  }
  byId("policies-all").hidden = f.decision.length <= FEW;
  byId("policies-all").textContent = all ? "Show the best " + FEW : "Show all " + f.decision.length;
  table(box, columns, rows, "There are no policies.");
  if (shown.counts.told && f.point && f.point[0].length === 1 && f.decision.length > FEW) along(f, sure, level);
}
function along(f, sure, level) {  // the members of a grid lie on a line
  const section = panel("grid", "Estimates along the grid");
  hint("grid", key("", "estimate"), ...(sure ? [key("area", level + " interval")] : []));
  const order = f.decision.map((_, i) => i).sort((i, j) => f.point[i][0] - f.point[j][0]);
  const pick = (column) => order.map((i) => column[i]);
  const line = { x: order.map((i) => f.point[i][0]), value: pick(f.value), low: pick(f.low), high: pick(f.high), seen: order.map(() => true), plays: pick(f.plays), edges: null, kind: "real" };
  chart(plot("grid", section), "Estimated payoff along the grid", (width) => slice(width, 260, line, "position", false, null));
}

// A box: slices through the recommended point.
const slice = (width, height, line, name, log, common) => {
  const ticks = common || padded(extent([...line.value.filter((_, i) => line.seen[i]), ...line.low, ...line.high]));
  const room = line.edges || line.kind !== "real" ? 24 : 0, rough = linear(...ticks, height - 22 - room, 8, 36);
  const frame = frame_of(width, height, rough, room), y = linear(...ticks, frame.bottom, frame.top, 36);
  const inside = (v) => v === null ? null : Math.min(Math.max(v, ticks[0]), ticks[1]);
  const choice = line.kind === "choice";
  const x = choice ? categories(line.x, frame.left, frame.right)
    : (log ? logarithmic : linear)(line.x[0], line.x.at(-1) === line.x[0] ? line.x[0] + 1 : line.x.at(-1), frame.left, frame.right);
  const xs = choice ? line.x.map((_, i) => i) : line.x, places = xs.map((at) => x(at));
  if (line.kind === "integer") x.ticks = x.ticks.filter(Number.isInteger);
  const shapes = axes({ ...frame, bottom: frame.bottom + room }, x, y);
  if (choice) {
    line.x.forEach((_, i) => {
      if (line.value[i] === null) return;
      if (!line.seen[i]) { shapes.push(svg("circle", { class: "hollow", cx: places[i], cy: y(inside(line.value[i])), r: 4 })); return; }
      if (line.low[i] !== null) shapes.push(svg("line", { class: "whisker", x1: places[i], x2: places[i], y1: y(inside(line.low[i])), y2: y(inside(line.high[i])) }));
      shapes.push(svg("circle", { class: "dot main", cx: places[i], cy: y(inside(line.value[i])), r: 4.5 }));
    });
  } else {
    const values = line.value.map(inside);
    shapes.push(svg("path", { class: "band", d: area(xs, line.low.map(inside), line.high.map(inside), x, y) }),
      svg("path", { class: "line doubt", d: run(xs, values, x, y) }), svg("path", { class: "line", d: run(xs, values, x, y, (i) => line.seen[i]) }));
    if (line.centre !== undefined && line.centre !== null) shapes.push(svg("line", { class: "mark", x1: x(line.centre), x2: x(line.centre), y1: frame.top, y2: frame.bottom }));
  }
  if (room) {  // how often what was played, below
    const most = Math.max(1, ...line.plays), floor = frame.bottom + room - 2;
    line.plays.forEach((n, i) => {
      if (!n) return;
      const half = Math.min(14, (frame.right - frame.left) / places.length / 3);
      const [a, b] = line.edges ? [x(line.edges[i]), x(line.edges[i + 1])] : [places[i] - half, places[i] + half];
      const tall = Math.max(1.5, 20 * n / most);
      shapes.push(svg("rect", { class: "bar", x: a.toFixed(1), y: (floor - tall).toFixed(1), width: Math.max(1, b - a - 1).toFixed(1), height: tall.toFixed(1) }));
    });
  }
  return { height, shapes, count: xs.length, nearest: nearest_of(places), mark: (i) => upright(frame, places[i]),
    read: (i) => name + " = " + value(line.x[i]) + ": " + (line.seen[i] ? short(line.value[i]) + (line.low[i] === null ? "" : " (" + between({ low: line.low[i], high: line.high[i] }) + ")") : "not seen")
      + (line.effective_samples ? ", worth " + short(line.effective_samples[i]) + " plays" : "") };
};
function box(b) {
  const section = panel("slices", b.dimension > 1 ? "Parameters" : "Parameter"), sure = b.lines.some((line) => line.low.some((x) => x !== null));
  hint("slices", key("", "estimated payoff"), ...(sure ? [key("area", "95% interval")] : []), key("doubt", "not seen"), key("bars", "how often played"), key("warm", "recommended"),
    element("span", b.dimension > 1 ? "Each alone, the others as recommended." : ""));
  let grid = byId("slices");
  if (!grid) {
    grid = element("div", null, { id: "slices", class: "multiples" });
    section.append(grid);
  }
  const seen = b.lines.flatMap((line) => [...line.value, ...line.low, ...line.high].filter((_, i) => line.seen[i % line.seen.length]));
  const common = padded(extent(seen), 0.1);  // one scale, so that slices can be compared
  b.lines.forEach((line, k) => {
    let cell = byId("slice-" + k + "-cell");
    if (!cell) {
      cell = element("div", null, { id: "slice-" + k + "-cell" }, element("h3", b.names[k] + (b.log[k] ? " (log scale)" : "")));
      grid.append(cell);
    }
    chart(plot("slice-" + k, cell), "Estimated payoff along " + b.names[k] + "; recommended: " + value(line.centre), (width) => slice(width, 200, line, b.names[k], b.log[k], common));
    numbers(cell, "slice-" + k + "-numbers", [b.names[k], "estimate", "low", "high", "worth in plays", "not seen"], () => line.x.map((at, i) =>
      [value(at), short(line.value[i]), short(line.low[i]), short(line.high[i]), short(line.effective_samples[i]), line.missing[i] === null ? "–" : Math.round(100 * line.missing[i]) + "%"]));
  });
  if (b.plane) plane(b);
}
function plane(b) {
  const [i, j] = b.plane.dimensions, section = panel("plane", "Two parameters at once");
  section.classList.add("wide");
  if (b.dimension > 2 && !exported && !byId("choose-plane")) {
    const select = element("select", null, { id: "choose-plane" });
    for (let m = 0; m < b.dimension; m++) for (let n = m + 1; n < b.dimension; n++) select.append(element("option", b.names[m] + " and " + b.names[n], { value: m + "," + n }));
    select.addEventListener("change", () => { dimensions = select.value; look(); });
    section.firstChild.append(element("label", "Over ", { class: "soft" }, select));
  }
  hint("plane", "Estimated payoff over " + b.names[i] + " (across) and " + b.names[j] + " (up), all else as recommended. ", key("grey", "not seen"));
  const p = b.plane, cells = p.value.flat(), [low, high] = extent(cells), wide = p.x.length, tall = p.y.length;
  chart(plot("plane", section), "Estimated payoff over " + b.names[i] + " and " + b.names[j] + ", from " + short(low <= high ? low : null) + " to " + short(low <= high ? high : null), (width) => {
    const height = Math.min(420, Math.max(240, width * 0.62)), even = (n) => (k) => k + 0.5;
    const names = p.y.map((of) => typeof of === "number" ? short(of, 3) : of), left = Math.min(110, 12 + 7 * Math.max(...names.map((name) => name.length)));
    const frame = { left, right: width - 10, top: 8, bottom: height - 22 };
    const dx = (frame.right - left) / wide, dy = (frame.bottom - frame.top) / tall;
    const x = (k) => left + even(wide)(k) * dx, y = (k) => frame.bottom - even(tall)(k) * dy;
    const some = (n, room) => { const every = Math.max(1, Math.ceil(n / room)); return Array.from({ length: n }, (_, k) => k).filter((k) => k % every === 0); };
    const shapes = [svg("rect", { class: "blank", x: left, y: frame.top, width: frame.right - left, height: frame.bottom - frame.top })];
    cells.forEach((v, at) => {
      if (v === null) return;
      const m = at % wide, n = Math.floor(at / wide);
      shapes.push(svg("rect", { class: "cell", x: (left + m * dx).toFixed(2), y: (frame.bottom - (n + 1) * dy).toFixed(2), width: dx.toFixed(2), height: dy.toFixed(2), fill: tint(high > low ? (v - low) / (high - low) : 0.5) }));
    });
    shapes.push(...axes(frame, Object.assign(x, { ticks: some(wide, Math.max(2, (width - left) / 80)), label: (k) => typeof p.x[k] === "number" ? short(p.x[k], 3) : p.x[k] }), Object.assign(y, { ticks: [], label: String })));
    for (const k of some(tall, 6)) shapes.push(svg("text", { x: left - 6, y: y(k) + 4, "text-anchor": "end" }, names[k]));
    const near = (values, of) => typeof of === "number" ? nearest_of(b.log[values === p.x ? i : j] ? values.map(Math.log) : values)(b.log[values === p.x ? i : j] ? Math.log(of) : of) : values.indexOf(of);
    const [cx, cy] = [x(near(p.x, b.lines[i].centre)), y(near(p.y, b.lines[j].centre))], cross = "M" + (cx - 6) + " " + (cy - 6) + "l12 12m0 -12l-12 12";
    if (shown.counts.told) shapes.push(svg("path", { class: "cross under", d: cross }), svg("path", { class: "cross", d: cross }));
    return { height, shapes, count: cells.length, across: wide,
      nearest: (at, up) => Math.min(wide - 1, Math.max(0, Math.floor((at - left) / dx))) + wide * Math.min(tall - 1, Math.max(0, Math.floor((frame.bottom - up) / dy))),
      mark: (at) => [svg("rect", { class: "cursor", fill: "none", x: left + (at % wide) * dx, y: frame.bottom - (Math.floor(at / wide) + 1) * dy, width: dx, height: dy })],
      read: (at) => b.names[i] + " = " + value(p.x[at % wide]) + ", " + b.names[j] + " = " + value(p.y[Math.floor(at / wide)]) + ": " + (cells[at] === null ? "not seen" : short(cells[at])),
      rest: "Cross: recommended." };
  });
  if (!byId("plane-scale")) section.append(element("p", null, { class: "scale", id: "plane-scale" }));
  byId("plane-scale").replaceChildren(...(low <= high ? [element("span", short(low)), element("span", null, { class: "ramp" }), element("span", short(high))] : [element("span", "Nothing was seen well enough yet.")]));
}
