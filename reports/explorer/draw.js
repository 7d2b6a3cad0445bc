"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const sum = (values) => values.reduce((a, b) => a + b, 0);
const shorten = (text, most) => text.length > most ? text.slice(0, most - 1) + "…" : text;

// Digits as the reports have them: "9,843", "12.3", "0.0123".
function number(value) {
  if (Math.abs(value) >= 99.5) return Math.round(value).toLocaleString("en");
  return String(Number(value.toPrecision(3)));
}

// ---- Elements. Text is only ever set as text.

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  return made;
}

function shape(parent, name, attributes, hover) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (hover) shape(made, "title", {}).textContent = hover;
  parent.append(made);
  return made;
}

function write(svg, x, y, text, more = {}) {
  const { ink = "text", ...rest } = more;
  const attributes = { x, y, "font-size": 12, ...rest, class: `f-${ink} ${rest.class || ""}` };
  shape(svg, "text", attributes).textContent = text;
}

function line(svg, x1, y1, x2, y2, ink, more = {}) {
  shape(svg, "path", { d: `M${x1} ${y1}L${x2} ${y2}`, class: `s-${ink}`, fill: "none", ...more });
}

// Shape and colour by accuracy class; a participant's kernel and a library have
// their own.
function inkOf(row) {
  if (row.own) return "orange";
  if (row.library) return "grey";
  if (row.class.startsWith("fp32")) return "blue";
  return row.class === "tf32" ? "green" : "purple";
}

// Why a row's times are no result; empty if they are one.
function wrongOf(run, row) {
  if (row.wrong) return row.wrong;
  const differs = row.correct && run.expected !== undefined && Math.abs(row.correct - run.expected) > row.allowed;
  return differs ? `${number(row.correct)} right answers, expected ${number(run.expected)}` : "";
}

// What is wrong is hollow.
function mark(svg, x, y, row, hover, wrong) {
  const ink = inkOf(row), r = 4.6;
  const d = {
    blue: `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
    green: `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    purple: `M${x} ${y - 1.2 * r}l${1.15 * r} ${2.2 * r}h${-2.3 * r}z`,
    grey: `M${x - r} ${y - 2}h${2 * r}v4h${-2 * r}z`,
    orange: `M${x} ${y - 1.4 * r}l${1.4 * r} ${1.4 * r}l${-1.4 * r} ${1.4 * r}l${-1.4 * r} ${-1.4 * r}z`,
  }[ink];
  shape(svg, "path", wrong ? { d, class: `s-${ink}`, fill: "none", "stroke-width": 1.6 } : { d, class: `f-${ink}` },
        wrong ? `${hover}; wrong: ${wrong}` : hover);
}

// The legend of hollow marks, where there are any.
function explainWrong(id, entries) {
  if (!entries.some((one) => one.wrong)) return;
  byId(id).append(element("p", "Hollow marks and ✗: the results are wrong or the time does not count, and there is no speedup."));
}

const empty = (id, text) => byId(id).replaceChildren(element("p", text));

function canvas(id, height, label) {
  const width = Math.max(byId(id).clientWidth, 300);
  const svg = shape(byId(id), "svg", {
    viewBox: `0 0 ${width} ${height}`, width, height, role: "img", "aria-label": label,
    "font-family": "system-ui, sans-serif",
  });
  byId(id).replaceChildren(svg);
  return { svg, width };
}

// A logarithmic axis: powers of ten, and 3 times or 2 and 5 times them where
// there is room; in a range that holds only one of these, even steps.
function logScale(values, from, to, margin = 1.3) {
  const low = Math.min(...values) / margin, high = Math.max(...values) * margin;
  const at = (value) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
  let ticks = [];
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power) {
      for (const factor of factors) {
        const value = factor * 10 ** power;
        if (value >= low && value <= high) ticks.push(value);
      }
    }
    if (ticks.length <= Math.max(4, Math.abs(to - from) / 60)) break;
  }
  if (ticks.length < 2) {
    const room = Math.max(3, Math.abs(to - from) / 90), unit = 10 ** Math.floor(Math.log10((high - low) / room));
    const step = unit * [1, 2, 5, 10].find((factor) => (high - low) / (factor * unit) <= room);
    ticks = [];
    for (let i = Math.ceil(low / step); i * step <= high; ++i) ticks.push(i * step);
  }
  return { at, ticks, low, high };
}

// The room that the labels of an axis take at its left.
const leftOf = (y) => 10 + 8 * Math.max(...y.ticks.map((value) => number(value).length));

function axes(svg, x, y, box, xName, yName) {
  const edge = svg.viewBox.baseVal.width;
  for (const value of x.ticks) {
    line(svg, x.at(value), box.top, x.at(value), box.bottom, "grid");
    const half = 4 * number(value).length;
    write(svg, Math.min(x.at(value), edge - half), box.bottom + 16, number(value), { ink: "muted", "text-anchor": "middle" });
  }
  write(svg, box.right, box.bottom + 33, xName, { "text-anchor": "end" });
  if (!y) return;
  for (const value of y.ticks) {
    line(svg, box.left, y.at(value), box.right, y.at(value), "grid");
    write(svg, box.left - 6, y.at(value) + 4, number(value), { ink: "muted", "text-anchor": "end" });
  }
  write(svg, 0, box.top - 8, yName);
}

// Texts that stand one above the other, at least a line apart.
function names(svg, labels, bottom) {
  labels.sort((a, b) => a.y - b.y);
  let free = -Infinity;
  for (const label of labels) { label.to = Math.max(label.y, free); free = label.to + 14; }
  let limit = bottom;
  for (const label of labels.reverse()) { label.to = Math.min(label.to, limit); limit = label.to - 14; }
  for (const label of labels) {
    const x = label.x + (label.left ? -20 : 20);
    line(svg, label.x + (label.left ? -6 : 6), label.y, x, label.to, "grey", { "stroke-width": 0.6 });
    const room = label.left ? x : svg.viewBox.baseVal.width - x;
    write(svg, x + (label.left ? -2 : 2), label.to + 4, shorten(label.text, Math.min(22, Math.floor(room / 7.4))),
          { ink: label.ink || "text", class: "name", "text-anchor": label.left ? "end" : "start" });
  }
}

function table(id, headings, rows) {
  const made = element("table", undefined, { class: "sortable" });
  const head = element("tr");
  headings.forEach((heading, column) => {
    const cell = element("th");
    const button = element("button", heading);
    button.addEventListener("click", () => {
      const down = cell.getAttribute("aria-sort") === "ascending";
      head.querySelectorAll("th").forEach((one) => one.removeAttribute("aria-sort"));
      cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => {
        const text = row.cells[column].textContent, parsed = parseFloat(text.replace(/,/g, ""));
        return [Number.isNaN(parsed) ? Infinity : parsed, text];
      };
      const body = made.tBodies[0];
      body.append(...[...body.rows].sort((p, q) => {
        const [a, b] = [value(p), value(q)];
        const order = a[0] === b[0] ? a[1].localeCompare(b[1]) : a[0] - b[0];
        return down ? -order : order;
      }));
    });
    cell.append(button);
    head.append(cell);
  });
  made.append(element("thead"), element("tbody"));
  made.tHead.append(head);
  for (const row of rows) {
    const line = element("tr");
    for (const cell of row) line.append(element("td", cell));
    made.tBodies[0].append(line);
  }
  byId(id).replaceChildren(made);
}

