"use strict";
// What all parts of the page use. Texts enter as text, never as HTML.
const byId = (id) => document.getElementById(id);
const root = document.documentElement;

function store(kind, key, value) {  // storage may be forbidden
  try {
    if (value === undefined) return window[kind].getItem(key);
    window[kind].setItem(key, value);
  } catch { /* then nothing is remembered */ }
  return null;
}

function element(tag, text, attributes = {}, ...children) {
  const made = document.createElement(tag);
  if (text !== undefined && text !== null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Numbers and times as people write them.
const whole = (n) => n.toLocaleString("en");
const short = (x, digits = 4) => x === null || x === undefined ? "–" : Math.abs(x) >= 1e6 || (x !== 0 && Math.abs(x) < 1e-3)
  ? Number(x.toPrecision(3)).toExponential().replace("e+", "e") : Number(x.toPrecision(digits)).toLocaleString("en", { maximumFractionDigits: 12 });
const value = (x) => typeof x === "number" ? short(x) : String(x);
function point(x) {
  if (x === null || x === undefined) return "–";
  if (Array.isArray(x)) return "(" + x.map(value).join(", ") + ")";
  if (typeof x === "object") return Object.entries(x).map(([name, of]) => name + " = " + value(of)).join(", ");
  return value(x);
}
const between = (of) => of.low === null || of.low === undefined ? "" : short(of.low) + " to " + short(of.high);
function ago(seconds) {
  const s = Math.max(0, Math.round(seconds));
  return s < 60 ? s + " s" : s < 3600 ? Math.round(s / 60) + " min" : s < 172800 ? Math.round(s / 3600) + " h" : Math.round(s / 86400) + " d";
}
const moment = (at) => new Date(at * 1000).toLocaleString();

// A table whose roles are said: on narrow screens it is laid out as a list, and stays a table to those who listen.
function table(target, columns, rows, empty) {
  const head = element("thead", null, { role: "rowgroup" }, element("tr", null, { role: "row" }, ...columns.map((column) => {
    const cell = element("th", column.name, { scope: "col", role: "columnheader", ...(column.kind ? { class: column.kind } : {}) });
    if (column.below) cell.append(column.below);
    return cell;
  })));
  const body = element("tbody", null, { role: "rowgroup" }, ...rows.map((row) => {
    const line = element("tr", null, { role: "row", ...(row.kind ? { class: row.kind } : {}) });
    row.cells.forEach((given, i) => {
      const column = columns[i], first = column.first;
      const cell = element(first ? "th" : "td", null, { role: first ? "rowheader" : "cell", ...(first ? { scope: "row" } : {}) });
      cell.className = [column.kind, given && given.kind].filter(Boolean).join(" ");
      if (!first && column.label !== false) cell.setAttribute("data-label", column.label || column.name);
      if (given instanceof Node) cell.append(given);
      else if (given !== null && given !== undefined) cell.textContent = given.text === undefined ? given : given.text;
      line.append(cell);
    });
    return line;
  }));
  if (!rows.length) body.append(element("tr", null, { role: "row" }, element("td", empty, { role: "cell", colspan: columns.length, class: "soft" })));
  target.setAttribute("role", "table");
  const caption = target.querySelector("caption");
  target.replaceChildren(...(caption ? [caption] : []), head, body);
}

// Theme: the system's, until the button is used.
const night = matchMedia("(prefers-color-scheme: dark)");
function theme(choice) {
  const dark = choice === "dark" || (choice !== "light" && night.matches);
  root.dataset.theme = dark ? "dark" : "light";
  byId("theme").setAttribute("aria-pressed", String(dark));
}
theme(store("localStorage", "theme"));
night.addEventListener("change", () => theme(store("localStorage", "theme")));
byId("theme").addEventListener("click", () => {
  const next = root.dataset.theme === "dark" ? "light" : "dark";
  store("localStorage", "theme", next);
  theme(next);
});
byId("skip").addEventListener("click", (event) => {  // the address names the study, and stays
  event.preventDefault();
  byId("main").focus();
});
