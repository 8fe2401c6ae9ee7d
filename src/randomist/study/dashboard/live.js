"use strict";
// Following a service, or showing what an export holds. The address says which study: #name, or nothing for all of them.
const api = "api/v1/";
const given = JSON.parse(byId("data").textContent);
const exported = given !== null;
let token = null, scope = "read", stream = null, timer = null;
class Refused extends Error {}

async function call(path, options = {}) {
  const headers = { ...(token ? { Authorization: "Bearer " + token } : {}), ...options.headers };
  const answer = await fetch(api + path, { ...options, headers, cache: "no-store" });
  if (answer.status === 401 || answer.status === 403) throw new Refused();
  if (!answer.ok) throw new Error((await answer.json().catch(() => ({}))).message || "the service answered " + answer.status);
  return answer;
}
const of = (path) => "studies/" + encodeURIComponent(current()) + path;
const current = () => { try { return decodeURIComponent(location.hash.slice(1)); } catch { return ""; } };
function say(kind, text) {
  if (byId("status").textContent === text) return;
  byId("status").className = kind;
  byId("status").textContent = text;
}
function problem(text) {
  byId("problem").hidden = !text;
  byId("problem").textContent = text || "";
}
function troubled(error) {
  if (error instanceof Refused) login();
  else if (error.name !== "AbortError") problem(error.message);
}
const wait = (seconds) => new Promise((done) => setTimeout(done, 1000 * seconds));

// What is new: counts and the last buckets of payoffs. Estimates take the service longer, and come less often.
let wanted = false, fetching = false, looked = 0, cost = 0, later = null;
async function refresh() {
  wanted = true;
  if (fetching || !shown) return;
  fetching = true;
  const name = current();
  try {
    while (wanted && name === current()) {
      wanted = false;
      const p = shown.payoffs, last = Math.max(0, p.x.length - 1);
      const next = await (await call(of("/dashboard/news?size=" + p.size + "&first=" + last))).json();
      if (name !== current()) break;
      const again = next.counts.retracted !== shown.counts.retracted;
      if (again) next.payoffs = (await (await call(of("/dashboard/news"))).json()).payoffs;
      shown = { ...shown, ...next, payoffs: joined(p, next.payoffs) };
      problem("");
      figures();
      changes();
      payoffs(shown.payoffs, shown.counts);
      if (before === null) await trials();
      soon();
      await wait(0.4);
    }
  } catch (error) { troubled(error); } finally { fetching = false; }
  if (wanted && shown) refresh();
}
function joined(old, tail) {
  if (tail.size !== old.size || tail.first === 0) return tail;
  const whole = { ...tail, first: 0 };
  for (const column of ["x", "mean", "least", "largest", "average", "best", "at"]) whole[column] = old[column].slice(0, tail.first).concat(tail[column]);
  return whole;
}
function soon() {  // not before 3 seconds, nor so often that the service does little else
  if (later) return;
  later = setTimeout(() => { later = null; look(); }, Math.max(300, looked + Math.max(3000, 20 * cost) - Date.now()));
}
async function look() {
  const name = current(), began = Date.now(), over = dimensions;
  try {
    const found = await (await call(of("/dashboard/estimates?dimensions=" + over))).json();
    if (name !== current() || !shown || over !== dimensions) return;  // whoever chose others has looked again
    looked = Date.now();
    cost = looked - began;
    shown = { ...shown, ...found };
    best();
    changes();
    if (shown.finite) finite(shown.finite);
    if (shown.box) box(shown.box);
    workers();
  } catch (error) { troubled(error); }
}
async function follow(name) {
  const mine = stream = new AbortController();
  while (!mine.signal.aborted) {
    try {
      const answer = await call(of("/events"), { signal: mine.signal, headers: { Accept: "text/event-stream" } });
      say("live", "live");
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let text = ""; ;) {
        const { done, value } = await reader.read();
        if (done) break;
        const parts = (text + value).split("\n\n");
        text = parts.pop();
        if (parts.some((part) => part.includes("event: change") && !same(part))) refresh();
      }
    } catch (error) {
      if (mine.signal.aborted) return;
      if (error instanceof Refused) return login();
    }
    if (mine.signal.aborted) return;
    say("away", "reconnecting");
    await wait(1);
  }
}
function same(event) {  // the first event says what is known already
  const found = event.match(/data: (.*)/), now = found ? JSON.parse(found[1]) : {}, c = shown.counts;
  return now.asked === c.asked && now.told === c.told && now.failed === c.failed;
}
async function fetch_trials(states, worker) {
  const name = current(), query = new URLSearchParams({ limit: SIZE });
  if (before !== null) query.set("before", before);
  if (worker) query.set("worker", worker);
  for (const state of states) query.append("state", state);
  try {
    const found = await (await call(of("/dashboard/trials?" + query))).json();
    return name === current() ? found : null;
  } catch (error) { troubled(error); return null; }
}
async function fail(id) {
  const reason = JSON.stringify({ reason: "marked as failed on the dashboard" });
  try {
    await call(of("/trials/" + id + "/fail"), { method: "POST", body: reason, headers: { "Content-Type": "application/json" } });
    byId("trials-title").focus();
    refresh();
  } catch (error) { problem(error instanceof Refused ? "this token may only read" : error.message); }
}

// Pages.
function show(page) {
  for (const id of ["login", "overview", "study"]) byId(id).hidden = id !== page;
  byId("home").hidden = page !== "study" || exported;
}
function login() {
  leave();
  say("away", "no access");
  show("login");
  byId("token").focus();
}
function leave() {
  remember();
  if (stream) stream.abort();
  clearInterval(timer);
  clearTimeout(later);
  later = stream = shown = null;
}
async function open_page() {
  leave();
  problem("");
  const name = current();
  say("", "loading");
  try {
    if (!name) {
      await open_overview();
      show("overview");
      say("live", "live");
      timer = setInterval(() => { if (!document.hidden) follow_overview().then(() => say("live", "live"), (error) => { say("away", "reconnecting"); if (error instanceof Refused) login(); }); }, 5000);
      return;
    }
    for (const id of ["panels"]) byId(id).replaceChildren();
    drawn.clear();
    pages.length = 0;
    before = null;
    all = false;
    dimensions = "0,1";
    byId("state").value = "";
    byId("worker").value = "";
    since = remembered(name);
    const began = Date.now(), found = await (await call(of("/dashboard?dimensions=" + dimensions))).json();
    if (name !== current()) return;
    shown = found;
    looked = Date.now();
    cost = looked - began;
    show("study");
    draw();
    await trials();
    follow(name);
  } catch (error) {
    if (!(error instanceof Refused)) say("away", "away");
    troubled(error);
  }
}
async function begin() {
  try {
    scope = (await (await call("whoami")).json()).scope;
    await open_page();
  } catch (error) {
    if (!(error instanceof Refused)) say("away", "away");
    troubled(error);
  }
}
byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  token = byId("token").value.trim();
  store("sessionStorage", "token", token);
  begin();
});
addEventListener("hashchange", () => { if (!exported && (token || root.dataset.public === "true")) open_page(); });
addEventListener("pagehide", remember);
document.addEventListener("visibilitychange", () => { if (document.hidden) remember(); });
if (exported) {
  shown = given;
  show("study");
  say("", "as of " + moment(shown.at));
  draw();
  trials();
} else {
  token = store("sessionStorage", "token");
  if (token || root.dataset.public === "true") begin();
  else login();
}
