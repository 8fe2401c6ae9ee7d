"use strict";
// The page of all studies. What was shown is kept; afterwards only studies come in which something happened.
const lines = new Map();
let counted = 0, following = null, overviewAt = 0;
function overview() {
  const wanted = byId("find").value.trim().toLowerCase();
  const sorted = [...lines.values()].sort((a, b) => b.active_at - a.active_at), fitting = sorted.filter((line) => line.name.toLowerCase().includes(wanted));
  document.title = "randomist studies";
  byId("finder").hidden = counted < 8;
  byId("overview-about").textContent = counted ? whole(counted) + (counted === 1 ? " study" : " studies") + ", the one where something happened last first." : "There is no study yet. Create one with rd.create_study or randomist study create.";
  byId("studies").replaceChildren(...fitting.map(line_of));
  byId("more").hidden = following === null;
}
function line_of(line) {
  const c = line.counts, was = remembered(line.name), told = was && was.created === line.created_at ? c.told - was.told : 0;
  const title = element("h2", null, {}, element("a", line.name, { href: "#" + encodeURIComponent(line.name) }));
  const about = element("p", line.learner + (line.archived ? ", archived" : ""), { class: "soft" });
  const entries = [["told", whole(c.told)], ["failed", whole(c.failed), c.failed ? "bad" : ""], ["open", whole(c.pending)], ["best", short(line.best)], ["average", short(line.average)], ["last activity", ago(overviewAt - line.active_at) + " ago"]];
  const news = told > 0 ? [element("p", "+" + whole(told) + " since your last look", { class: "new" })] : [];
  const words = line.spark.length ? "Payoffs of " + line.name + " from " + short(line.spark[0]) + " to " + short(line.spark.at(-1)) : "";
  return element("li", null, {}, element("div", null, {}, title, about, ...news), line.spark.length ? spark(line.spark, words) : element("p", line.problem || "nothing told yet", { class: line.problem ? "bad" : "soft" }),
    element("dl", null, { class: "figures" }, ...entries.map(([name, text, kind]) => element("div", null, {}, element("dt", name), element("dd", text, kind ? { class: kind } : {})))));
}
async function fetch_overview(first, after) {
  const found = await (await call("overview?first=" + first + "&after=" + after)).json();
  for (const line of found.studies) lines.set(line.name, line);
  overviewAt = found.at;
  return found;
}
async function open_overview() {
  lines.clear();
  const found = await fetch_overview(0, 0);
  counted = found.of;
  following = found.next;
  overview();
}
async function follow_overview() {
  const newest = Math.max(0, ...[...lines.values()].map((line) => line.active_at));
  const found = await fetch_overview(0, newest);
  counted = found.of;
  overview();
}
byId("more").addEventListener("click", async () => {
  following = (await fetch_overview(following, 0)).next;
  overview();
});
byId("find").addEventListener("input", overview);
