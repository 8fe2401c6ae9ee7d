"use strict";
// The page of one study: what is recommended, what changed since the last look, and the table of trials.
let shown = null;  // the study's numbers, as far as they are known
let dimensions = "0,1", before = null;

function draw() {
  const about = shown.study, space = about.space;
  document.title = about.name + " · randomist";
  byId("title").textContent = about.name;
  const where = space.parameters ? space.parameters.map(described).join(", ") : space.kind === "Box" ? "a box from " + point(space.low) + " to " + point(space.high) : space.size + " policies";
  byId("about").textContent = about.learner + " on " + where + ". Created " + moment(about.created_at) + (shown.archived ? ". Archived: it may only be read." : ".");
  figures();
  changes();
  best();
  payoffs(shown.payoffs, shown.counts);
  if (shown.finite) finite(shown.finite);
  if (shown.box) box(shown.box);
  workers();
}

const described = (p) => p.name + (p.options ? " among " + p.options.map(String).join(", ") : " from " + value(p.low) + " to " + value(p.high) + (p.log ? " (log)" : "") + (p.kind === "Integer" ? ", whole" : ""));

function figures() {
  const c = shown.counts, p = shown.payoffs, last = p.x.length - 1;
  const entries = [["told", whole(c.told)], ["failed", whole(c.failed), c.failed ? "failed" : ""], ["open", whole(c.pending)],
    ...(c.stale ? [["stale", whole(c.stale), "stale"]] : []), ...(c.retracted ? [["retracted", whole(c.retracted)]] : []),
    ["average payoff", last < 0 ? "–" : short(p.average[last])], ["best payoff", last < 0 ? "–" : short(p.best[last])]];
  byId("counts").replaceChildren(...entries.map(([name, text, kind]) => element("div", null, {}, element("dt", name), element("dd", text, kind ? { class: kind } : {}))));
}

function best() {
  const b = shown.best, parts = [];
  if (!shown.known || b.decision === null) parts.push(element("p", "Nothing yet: a payoff must be told first.", { class: "soft" }));
  else {
    if (b.parameters) parts.push(element("dl", null, {}, ...Object.entries(b.parameters).map(([name, of]) => element("div", null, {}, element("dt", name), element("dd", value(of))))));
    else parts.push(element("p", called(b), { class: "choice" }));
    if (b.value !== null && b.value !== undefined) {
      parts.push(element("p", "Estimated payoff " + short(b.value) + (b.low === null || b.low === undefined ? (shown.box && !shown.box.intervals ? ". This learner gives no interval." : "; no interval yet.") : ", between " + short(b.low) + " and " + short(b.high) + " (95%).")));
    }
    if (b.confirmed) parts.push(element("p", "Confirmed by " + whole(b.confirmed.plays) + " plays of it: " + short(b.confirmed.mean) + (b.confirmed.low === null ? "" : ", between " + short(b.confirmed.low) + " and " + short(b.confirmed.high) + " (95%, " + b.confirmed.basis + ").")));
  }
  byId("best").replaceChildren(...parts);
}
const called = (b) => b.decision === null ? null : shown.finite ? policy(b.decision) : point(b.parameters || b.decision);

// What changed since the last look: kept in this browser, written when the page is left.
const remembered = (name) => { try { return JSON.parse(store("localStorage", "look:" + name)); } catch { return null; } };
let since = null;
function changes() {
  const line = byId("since"), was = since, c = shown.counts, p = shown.payoffs, now = p.best.at(-1) ?? null;
  if (!was || exported || was.created !== shown.study.created_at) { line.hidden = true; return; }
  const news = [];
  if (c.told > was.told) news.push(whole(c.told - was.told) + " told");
  if (c.failed > was.failed) news.push(whole(c.failed - was.failed) + " failed");
  if (c.retracted > was.retracted) news.push(whole(c.retracted - was.retracted) + " retracted");
  if (now !== null && was.best !== null && now > was.best) news.push("best payoff " + short(now) + ", was " + short(was.best));
  const name = called(shown.best);
  if (was.recommended && name && name !== was.recommended) news.push("recommended " + name + ", was " + was.recommended);
  line.hidden = false;
  line.textContent = "Since your last look " + ago(shown.at - was.at) + " ago: " + (news.length ? news.join("; ") + "." : "nothing new.");
}
function remember() {
  if (!shown || exported) return;
  store("localStorage", "look:" + shown.study.name, JSON.stringify({ created: shown.study.created_at, at: shown.at, told: shown.counts.told, failed: shown.counts.failed,
    retracted: shown.counts.retracted, best: shown.payoffs.best.at(-1) ?? null, recommended: called(shown.best) }));
}

function workers() {
  table(byId("workers"), [{ name: "worker", first: true }, { name: "told", kind: "number" }, { name: "failed", kind: "number" }, { name: "open", kind: "number" }, { name: "last seen" }],
    shown.workers.map((w) => ({ cells: [w.worker, whole(w.told), { text: whole(w.failed), kind: w.failed ? "failed" : "" }, whole(w.pending), ago(shown.at - w.seen) + " ago"] })), "Nobody has asked yet.");
  const select = byId("worker"), chosen = select.value, names = shown.workers.map((w) => w.worker);
  if (chosen && !names.includes(chosen)) names.push(chosen);
  if (select.options.length !== names.length + 1 || names.some((name, i) => select.options[i + 1].value !== name)) {
    select.replaceChildren(element("option", "all", { value: "" }), ...names.map((name) => element("option", name, { value: name })));
    select.value = chosen;
  }
}

// The table of trials: a page at a time, from the service or from what an export has.
const pages = [];  // where the pages that were left begin
const SIZE = 15, COLUMNS = 6;
let wishes = 0;  // answers may come in another order than they were asked for; the last wish is drawn
async function trials() {
  const mine = ++wishes;
  const state = byId("state").value, worker = byId("worker").value, states = state === "open" ? ["asked", "stale"] : state ? [state] : [];
  const found = exported ? saved(states, worker) : await fetch_trials(states, worker);
  if (!found || mine !== wishes) return;
  const may = !exported && scope !== "read", finiteStudy = shown.study.space.kind === "Finite";
  const names = (shown.study.space.parameters || []).map((p) => p.name), apart = names.length > 0 && names.length <= COLUMNS;
  const played = apart ? names.map((name) => ({ name, kind: "number" })) : [{ name: finiteStudy ? "policy" : "played", label: false, kind: "long" }];
  const columns = [{ name: "trial", first: true }, { name: "state", label: false, kind: "tight" }, { name: "payoff", kind: "number" }, ...played,
    { name: "worker" }, { name: "when", label: false, kind: "tight" }, { name: "reason", kind: "long" }, ...(may ? [{ name: "action", label: false, kind: "tight" }] : [])];
  table(byId("trials"), columns, found.trials.map((t) => {
    const open = t.state === "asked" || t.state === "stale", text = t.state === "asked" ? "open" : t.feasible === false ? "failed, not feasible" : t.state;
    const when = open ? "asked " + ago(found.at - t.asked_at) + " ago, lease " + (t.state === "stale" ? "over for " + ago(found.at - t.lease_until) : "ends in " + ago(t.lease_until - found.at)) : ago(found.at - t.closed_at) + " ago";
    const what = apart ? names.map((name) => typeof t.parameters[name] === "number" ? short(t.parameters[name]) : String(t.parameters[name]))
      : [t.name !== null ? t.name : t.parameters ? point(t.parameters) : finiteStudy ? "policy " + t.decision : point(t.mediator)];
    const cells = [String(t.id), { text, kind: t.state }, t.payoff === null ? "" : short(t.payoff), ...what, t.worker + (t.closed_by && t.closed_by !== t.worker ? ", closed by " + t.closed_by : ""), when, t.reason || ""];
    if (may) cells.push(open ? button(t.id) : "");
    return { cells };
  }), state || worker ? "No trial is like this" + (found.next === null ? "." : " among those that were looked at; look at older ones.") : "No trial was asked yet.");
  byId("newer").disabled = !pages.length;
  byId("older").disabled = found.next === null;
  byId("older").next = found.next;
  byId("page").textContent = found.trials.length ? "trials " + found.trials[0].id + " to " + found.trials.at(-1).id : "";
}
function button(id) {
  const made = element("button", "Fail", { type: "button", class: "small", "aria-label": "Mark trial " + id + " as failed" });
  made.addEventListener("click", () => fail(id));
  return made;
}
function saved(states, worker) {
  const rows = shown.trials.filter((t) => (!states.length || states.includes(t.state)) && (!worker || t.worker === worker) && (before === null || t.id < before));
  return { trials: rows.slice(0, SIZE), next: rows.length > SIZE ? rows[SIZE - 1].id : null, at: shown.at };
}
function turn(to, back) {
  if (!back) pages.push(before);
  before = to;
  trials();
}
byId("older").addEventListener("click", () => turn(byId("older").next, false));
byId("newer").addEventListener("click", () => turn(pages.pop() ?? null, true));
for (const id of ["state", "worker"]) byId(id).addEventListener("change", () => { pages.length = 0; before = null; trials(); });
byId("filter").addEventListener("submit", (event) => event.preventDefault());
