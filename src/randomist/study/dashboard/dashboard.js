"use strict";
// One page, two lives: with data inside it is an export; without, it follows a service. Texts enter as text, never as HTML.
const byId = (id) => document.getElementById(id);
const root = document.documentElement;
const api = "api/v1/";
let data = JSON.parse(byId("data").textContent);
const exported = data !== null;
let ready = false, token = null, scope = "read", plane = "0,1", stream = null, wanted = false, fetching = false;

function store(kind, key, value) {  // storage may be forbidden
  try {
    if (value === undefined) return window[kind].getItem(key);
    window[kind].setItem(key, value);
  } catch { /* then nothing is remembered */ }
  return null;
}

// Theme: the system's, until the button is used.
const night = matchMedia("(prefers-color-scheme: dark)");
function theme(choice) {
  const dark = choice === "dark" || (choice !== "light" && night.matches);
  root.dataset.theme = dark ? "dark" : "light";
  byId("theme").setAttribute("aria-pressed", String(dark));
  if (ready && data) draw();
}
theme(store("localStorage", "theme"));
night.addEventListener("change", () => theme(store("localStorage", "theme")));
byId("theme").addEventListener("click", () => {
  const next = root.dataset.theme === "dark" ? "light" : "dark";
  store("localStorage", "theme", next);
  theme(next);
});

// Small helpers.
function element(tag, text, attributes = {}) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}
const short = (x) => x === null || x === undefined ? "–" : Math.abs(x) >= 1e5 || (x !== 0 && Math.abs(x) < 1e-3)
  ? x.toExponential(2) : Number(x.toPrecision(4)).toLocaleString("en");
const value = (x) => typeof x === "number" ? (Number.isInteger(x) ? String(x) : short(x)) : String(x);
const point = (x) => x !== null && typeof x === "object" && !Array.isArray(x) ? Object.entries(x).map(([name, of]) => name + " = " + value(of)).join(", ")
  : Array.isArray(x) ? "(" + x.map(short).join(", ") + ")" : Number.isInteger(x) ? String(x) : short(x);
function ago(seconds) {
  const s = Math.max(0, Math.round(seconds));
  return s < 60 ? s + " s" : s < 3600 ? Math.round(s / 60) + " min" : s < 172800 ? Math.round(s / 3600) + " h" : Math.round(s / 86400) + " d";
}
const counted = new Set(["told", "failed", "pending"]);  // columns of numbers
function table(target, head, rows, empty) {
  const body = element("tbody");
  for (const row of rows) {
    const line = element("tr");
    for (const cell of row) {
      const box = element("td");
      if (cell instanceof Node) box.append(cell);
      else {
        box.textContent = cell.text === undefined ? cell : cell.text;
        if (cell.kind) box.className = cell.kind;
      }
      line.append(box);
    }
    body.append(line);
  }
  if (!rows.length) {
    const line = element("tr");
    line.append(element("td", empty, { colspan: head.length }));
    body.append(line);
  }
  const top = element("thead"), line = element("tr");
  for (const name of head) line.append(element("th", name, { scope: "col", class: counted.has(name) ? "number" : "" }));
  top.append(line);
  target.replaceChildren(top, body);
}

// Panels: a heading, a line of explanation, and a chart.
function panel(id, title, hint, label) {
  let box = byId(id);
  if (!box) {
    const section = element("section", null, { "aria-labelledby": id + "-title" });
    box = element("div", null, { id, class: "plot", role: "img" });
    section.append(element("h2", title, { id: id + "-title" }), element("p", hint, { class: "hint", id: id + "-hint" }), box);
    byId("panels").append(section);
  }
  byId(id + "-title").textContent = title;
  byId(id + "-hint").textContent = hint;
  box.setAttribute("aria-label", label);
  return box;
}
function chart(box, traces, layout) {
  if (!window.Plotly) return;
  const dark = root.dataset.theme === "dark", ink = dark ? "#e4e8ed" : "#1b1f24", grid = dark ? "#343b45" : "#e3e7eb";
  const axis = { gridcolor: grid, zerolinecolor: grid, linecolor: grid, automargin: true };
  const touch = matchMedia("(pointer: coarse)").matches;
  window.Plotly.react(box, traces, {
    autosize: true, margin: { l: 52, r: 12, t: 8, b: 40 }, hovermode: "closest", dragmode: touch ? false : "zoom",
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)", showlegend: false,
    font: { family: "system-ui, 'DejaVu Sans', sans-serif", size: 12, color: ink },
    hoverlabel: { bgcolor: dark ? "#1d222a" : "#ffffff", font: { color: ink }, bordercolor: grid },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: dark ? "#a2abb6" : "#57606a", activecolor: ink },
    colorway: dark ? ["#7cb8f5", "#f2b15e", "#7ee09a", "#ff9d9d", "#c9a6ff"] : ["#0b5cad", "#b35900", "#116329", "#a40e26", "#6b3fa0"],
    ...layout,
    xaxis: { ...axis, ...layout.xaxis }, yaxis: { ...axis, ...layout.yaxis },
  }, { responsive: true, displaylogo: false, displayModeBar: touch ? false : "hover",
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] });
}
function colours() {
  const dark = root.dataset.theme === "dark";
  return dark ? { a: "#7cb8f5", b: "#f2b15e", band: "#7cb8f530", c: "#7ee09a", d: "#ff9d9d", soft: "#a2abb6" }
    : { a: "#0b5cad", b: "#b35900", band: "#0b5cad28", c: "#116329", d: "#a40e26", soft: "#57606a" };
}

function draw() {
  const shown = data.study, counts = data.counts, tint = colours();
  document.title = shown.name + " · randomist";
  byId("title").textContent = shown.name;
  const space = shown.space.parameters ? shown.space.parameters.join(", ") : shown.space.kind === "Box" ? "a box from " + point(shown.space.low) + " to " + point(shown.space.high)
    : shown.space.size + " decisions";
  byId("about").textContent = shown.learner + " on " + space + (shown.space.parameters ? "" : " (" + shown.space.family + ")") + ", since "
    + new Date(shown.created_at * 1000).toLocaleString();
  const figures = { asked: counts.asked, told: counts.told, failed: counts.failed, pending: counts.pending, stale: counts.stale,
    ...(counts.retracted ? { retracted: counts.retracted } : {}),
    average: data.payoffs.average.length ? short(data.payoffs.average.at(-1)) : "–",
    best: data.best === null ? "–" : data.finite?.name?.[data.finite.decision.indexOf(data.best)] ?? point(data.best) };
  byId("counts").replaceChildren(...Object.entries(figures).map(([name, value]) => {
    const box = element("div");
    box.append(element("dt", name), element("dd", typeof value === "number" ? value.toLocaleString("en") : value));
    return box;
  }));
  const p = data.payoffs;
  const recent = p.x.length ? "last average " + short(p.average.at(-1)) : "nothing told yet";
  chart(panel("payoffs", "Payoff and average over time", "Line: average of all so far. Dots: mean of a few consecutive tells; band: least to largest.",
    "Payoffs over " + counts.told + " tells; " + recent), [
    { x: p.x, y: p.largest, mode: "lines", line: { width: 0 }, hoverinfo: "skip" },
    { x: p.x, y: p.least, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: tint.band, hoverinfo: "skip" },
    { x: p.x, y: p.mean, mode: "markers", marker: { size: 3, color: tint.soft }, hovertemplate: "tell %{x}<br>payoff %{y:.5~g}<extra></extra>" },
    { x: p.x, y: p.average, mode: "lines", line: { width: 2.5, color: tint.b }, hovertemplate: "after %{x}<br>average %{y:.5~g}<extra></extra>" },
  ], { xaxis: { title: { text: "tells" } }, yaxis: { title: { text: "payoff" } } });
  if (data.finite) finite(data.finite, tint);
  if (data.box) box(data.box, tint);
  pendings();
  table(byId("workers"), ["worker", "told", "failed", "pending", "last seen"], data.workers.map((w) => [
    w.worker, { text: w.told.toLocaleString("en"), kind: "number" }, { text: w.failed, kind: "number" },
    { text: w.pending, kind: "number" }, ago(data.at - w.seen) + " ago"]), "No worker has asked yet.");
}

function intervals(x, of, tint, label) {
  const upper = of.value.map((v, i) => v === null ? null : of.width[i] === null ? null : of.width[i]);
  return { x, y: of.value, error_y: { type: "data", array: upper, color: tint.soft, thickness: 1.2, width: 2 }, mode: "markers",
    marker: { size: 7, color: tint.a }, text: label, hovertemplate: "%{text}<br>value %{y:.5~g} ± %{customdata}<extra></extra>",
    customdata: of.width.map((w) => w === null ? "∞" : short(w)) };
}

// Intervals can be far wider than payoffs: what is drawn is about the values and the payoffs.
function reach(values) {
  const seen = [...values, ...data.payoffs.least, ...data.payoffs.largest].filter((v) => v !== null);
  if (!seen.length) return {};
  const low = seen.reduce((a, b) => Math.min(a, b)), high = seen.reduce((a, b) => Math.max(a, b)), pad = (high - low || 1) * 0.15;
  return { range: [low - pad, high + pad] };
}

function finite(f, tint) {
  const names = f.decision.map((d, i) => (f.name ? f.name[i] : "decision " + d) + (f.point ? " at " + point(f.point[i]) : ""));
  const of = f.of > f.decision.length ? "The best and the most played " + f.decision.length + " of " + f.of + " decisions." : "Bars: ± width.";
  const axis = { title: { text: "decision" }, ...(f.decision.length <= 20 ? { tickmode: "array", tickvals: f.decision, ...(f.name ? { ticktext: f.name } : {}) } : {}) };
  const best = data.best === null ? "none yet" : f.name ? names[f.decision.indexOf(data.best)] : data.best;
  chart(panel("estimates", "Estimates with intervals", of + " Axis: the range of payoffs.", "Estimated value of " + f.decision.length + " decisions; best: " + best),
    [intervals(f.decision, f, tint, names)], { xaxis: axis, yaxis: { title: { text: "value" }, ...reach(f.value) } });
  bars("effective", "Effective samples", "How many runs of each decision the whole history is worth.", f.decision, f.effective_samples, names, tint.c, axis, "effective samples");
  bars("plays", "How often each decision was played", "", f.decision, f.plays, names, tint.a, axis, "plays");
  bars("missing", "Missing mass", "The part of each decision's distribution that the history does not see, or that truncation cuts.", f.decision, f.missing, names, tint.d, axis, "missing mass", [0, 1]);
}
function bars(id, title, hint, x, y, names, colour, xaxis, label, range) {
  chart(panel(id, title, hint, title + " of " + x.length + " decisions"), [
    { type: "bar", x, y, text: names, textposition: "none", marker: { color: colour }, hovertemplate: "%{text}<br>" + label + " %{y:.5~g}<extra></extra>" },
  ], { xaxis, yaxis: { title: { text: label }, ...(range ? { range } : { rangemode: "tozero" }) } });
}

function box(b, tint) {
  const through = "through " + point(b.centre.length === 1 ? b.centre[0] : b.centre);
  b.lines.forEach((line, k) => {
    const axis = { title: { text: b.names[k] }, ...(b.log[k] ? { type: "log" } : {}) };
    const name = b.dimension > 1 ? ", " + b.names[k] : "";
    const width = line.width.map((w) => w === null ? 1e9 : w);
    const up = line.value.map((v, i) => v === null ? null : v + width[i]), down = line.value.map((v, i) => v === null ? null : v - width[i]);
    chart(panel("estimates-" + k, "Estimates with intervals" + name, "A slice " + through + "; band: ± width.", "Estimated value along " + b.names[k]), [
      { x: line.x, y: up, mode: "lines", line: { width: 0 }, hoverinfo: "skip" },
      { x: line.x, y: down, mode: "lines", line: { width: 0 }, fill: "tonexty", fillcolor: tint.band, hoverinfo: "skip" },
      { x: line.x, y: line.value, mode: "lines", line: { width: 2.5, color: tint.a }, hovertemplate: "%{x:.4~g}<br>value %{y:.5~g}<extra></extra>" },
    ], { xaxis: axis, yaxis: { title: { text: "value" }, ...reach(line.value) } });
  });
  if (b.plane) {
    const [i, j] = b.plane.dimensions;
    const heat = panel("plane", "Estimates over " + b.names[i] + " and " + b.names[j], "A slice " + through + ".", "Estimated value over two dimensions");
    chart(heat, [{ type: "heatmap", x: b.plane.x, y: b.plane.y, z: b.plane.value, colorscale: "Viridis", colorbar: { thickness: 10, outlinewidth: 0 },
      hovertemplate: "(%{x:.4~g}, %{y:.4~g})<br>value %{z:.5~g}<extra></extra>" },
      { x: [b.centre[i]], y: [b.centre[j]], mode: "markers", marker: { symbol: "x", size: 10, color: "#ffffff", line: { color: "#000000", width: 1 } }, hovertemplate: "best<extra></extra>" }],
      { xaxis: { title: { text: b.names[i] }, ...(b.log[i] ? { type: "log" } : {}) }, yaxis: { title: { text: b.names[j] }, ...(b.log[j] ? { type: "log" } : {}) } });
    if (b.dimension > 2 && !exported) planes(heat, b.names);
  }
  const lines = (key) => b.lines.map((line, k) => ({ x: line.x, y: line[key], mode: "lines", name: b.names[k], line: { width: 2 } }));
  const many = { showlegend: b.dimension > 1, legend: { orientation: "h", y: 1.15 } };
  // evenly from low to high, whatever the units are
  const unit = (traces, half = 0) => b.dimension < 2 ? traces : traces.map((t) => ({ ...t, x: t.x.map((_, i) => (i + half) / (t.x.length - 1 + 2 * half)) }));
  const xaxis = { title: { text: b.dimension > 1 ? "from low to high" : "decision" } };
  chart(panel("effective", "Effective samples", "How many runs of a decision the whole history is worth, along slices " + through + ".", "Effective samples along slices"),
    unit(lines("effective_samples")), { ...many, xaxis, yaxis: { title: { text: "effective samples" }, rangemode: "tozero" } });
  chart(panel("plays", "How often decisions were played", "Played decisions, in thirty bins of every dimension.", "How often decisions were played"),
    unit(b.played.map((h, k) => ({ x: h.x, y: h.plays, mode: "lines", line: { shape: "hvh", width: 2 }, name: b.names[k] })), 0.5), { ...many, xaxis, yaxis: { title: { text: "plays" }, rangemode: "tozero" } });
  chart(panel("missing", "Missing mass", "The part of a decision's distribution that the history does not see, or that truncation cuts.", "Missing mass along slices"),
    unit(lines("missing")), { ...many, xaxis, yaxis: { title: { text: "missing mass" }, range: [0, 1.02] } });
}
function planes(heat, names) {  // which two to look at
  if (byId("choose-plane")) return;
  const select = element("select", null, { id: "choose-plane" }), label = element("label", "Over ", { class: "hint" });
  for (let i = 0; i < names.length; i++) for (let j = i + 1; j < names.length; j++) select.append(element("option", names[i] + " and " + names[j], { value: i + "," + j }));
  select.addEventListener("change", () => { plane = select.value; refresh(); });
  label.append(select);
  heat.before(label);
}

function pendings() {
  const may = !exported && scope !== "read";
  const head = ["trial", "state", "worker", "decision", "asked", "lease"].concat(may ? ["action"] : []);
  table(byId("pending"), head, data.pending.map((t) => {
    const row = [String(t.id), { text: t.state, kind: t.state }, t.worker, point(t.decision), ago(data.at - t.asked_at) + " ago",
      t.state === "stale" ? "over for " + ago(data.at - t.lease_until) : ago(t.lease_until - data.at) + " left"];
    if (may) {
      const button = element("button", "Fail", { type: "button", "aria-label": "Mark trial " + t.id + " as failed" });
      button.addEventListener("click", () => fail(t.id));
      row.push(button);
    }
    return row;
  }), "No trial is open.");
}

// Following a service.
class Refused extends Error {}
async function call(path, options = {}) {
  const headers = { ...(token ? { Authorization: "Bearer " + token } : {}), ...options.headers };
  const answer = await fetch(api + path, { ...options, headers, cache: "no-store" });
  if (answer.status === 401 || answer.status === 403) throw new Refused();
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).message || "the service answered " + answer.status);
  return answer;
}
function say(kind, text) {
  byId("status").className = kind;
  byId("status").textContent = text;
}
function problem(text) {
  byId("problem").hidden = !text;
  byId("problem").textContent = text || "";
}
const current = () => byId("studies").value;
async function refresh() {
  wanted = true;
  if (fetching) return;
  fetching = true;
  try {
    while (wanted) {
      wanted = false;
      const name = current();
      if (!name) break;
      const next = await (await call("studies/" + encodeURIComponent(name) + "/dashboard?dimensions=" + plane)).json();
      if (name !== current()) { wanted = true; continue; }
      data = next;
      byId("main").hidden = false;
      problem("");
      draw();
      if (wanted) await new Promise((done) => setTimeout(done, 400));
    }
  } catch (error) {
    if (error instanceof Refused) login();
    else problem(error.message);
  } finally { fetching = false; }
}
async function follow() {
  if (stream) stream.abort();
  const mine = stream = new AbortController(), name = current();
  while (!mine.signal.aborted && name) {
    try {
      const answer = await call("studies/" + encodeURIComponent(name) + "/events", { signal: mine.signal, headers: { Accept: "text/event-stream" } });
      say("live", "live");
      refresh();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { done, value } = await reader.read();
        if (done) break;
        text += value;
        const parts = text.split("\n\n");
        text = parts.pop();
        if (parts.some((part) => part.includes("event: change"))) refresh();
      }
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error instanceof Refused) return login();
    }
    if (mine.signal.aborted) return;
    say("away", "reconnecting");
    await new Promise((done) => setTimeout(done, 1000));
  }
}
async function fail(id) {
  const reason = JSON.stringify({ reason: "marked as failed on the dashboard" });
  try {
    await call("studies/" + encodeURIComponent(current()) + "/trials/" + id + "/fail", { method: "POST", body: reason, headers: { "Content-Type": "application/json" } });
    refresh();
  } catch (error) { problem(error instanceof Refused ? "this token may only read" : error.message); }
}
function login() {
  if (stream) stream.abort();
  say("away", "no access");
  byId("login").hidden = false;
  byId("token").focus();
}
async function begin() {
  try {
    scope = (await (await call("whoami")).json()).scope;
    const names = (await (await call("studies")).json()).studies;
    const asked = decodeURIComponent(location.hash.slice(1));
    byId("studies").replaceChildren(...names.map((name) => element("option", name, { value: name })));
    if (names.includes(asked)) byId("studies").value = asked;
    byId("choose").hidden = false;
    byId("login").hidden = true;
    if (!names.length) { say("", "no study yet"); return; }
    follow();
  } catch (error) {
    if (error instanceof Refused) login();
    else { say("away", "away"); problem(error.message); }
  }
}
byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  store("sessionStorage", "token", token);
  begin();
});
byId("studies").addEventListener("change", () => {
  location.hash = encodeURIComponent(current());
  byId("panels").replaceChildren();
  plane = "0,1";
  follow();
});
if (exported) {
  byId("main").hidden = false;
  say("", "as of " + new Date(data.at * 1000).toLocaleString());
} else {
  token = store("sessionStorage", "token");
  if (token || root.dataset.public === "true") begin();
  else login();
}
// Charts come when the library has arrived; the tables do not wait for it.
ready = true;
if (exported) draw();
addEventListener("load", () => { if (data) draw(); });
