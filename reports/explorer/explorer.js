"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const sum = (values) => values.reduce((a, b) => a + b, 0);
const timed = (row) => !row.failure && row.ms.length > 0;
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
  const attributes = { x, y, class: `f-${ink}`, "font-size": 12, ...rest };
  shape(svg, "text", attributes).textContent = text;
}

function line(svg, x1, y1, x2, y2, ink, more = {}) {
  shape(svg, "path", { d: `M${x1} ${y1}L${x2} ${y2}`, class: `s-${ink}`, fill: "none", ...more });
}

// Shape and colour by accuracy class; a participant's kernel has its own.
function inkOf(row) {
  if (row.own) return "orange";
  if (row.class.startsWith("fp32")) return "blue";
  return row.class === "tf32" ? "green" : "purple";
}

function mark(svg, x, y, row, hover) {
  const ink = inkOf(row), r = 4.6;
  const d = {
    blue: `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`,
    green: `M${x - r} ${y - r}h${2 * r}v${2 * r}h${-2 * r}z`,
    purple: `M${x} ${y - 1.2 * r}l${1.15 * r} ${2.2 * r}h${-2.3 * r}z`,
    orange: `M${x} ${y - 1.4 * r}l${1.4 * r} ${1.4 * r}l${-1.4 * r} ${1.4 * r}l${-1.4 * r} ${-1.4 * r}z`,
  }[ink];
  shape(svg, "path", { d, class: `f-${ink}` }, hover);
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

// A logarithmic axis: powers of ten, and 2 and 5 times them where there is room.
function logScale(values, from, to, margin = 1.3) {
  const low = Math.min(...values) / margin, high = Math.max(...values) * margin;
  const at = (value) => from + (Math.log(value / low) / Math.log(high / low)) * (to - from);
  let ticks = [];
  for (const factors of [[1, 2, 5], [1]]) {
    ticks = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power) {
      for (const factor of factors) {
        const value = factor * 10 ** power;
        if (value >= low && value <= high) ticks.push(value);
      }
    }
    if (ticks.length <= Math.max(4, Math.abs(to - from) / 60)) break;
  }
  return { at, ticks, low, high };
}

function axes(svg, x, y, box, xName, yName) {
  for (const value of x.ticks) {
    line(svg, x.at(value), box.top, x.at(value), box.bottom, "grid");
    write(svg, x.at(value), box.bottom + 16, number(value), { ink: "muted", "text-anchor": "middle" });
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
    write(svg, x + (label.left ? -2 : 2), label.to + 4, shorten(label.text, 22),
          { ink: label.ink || "text", "text-anchor": label.left ? "end" : "start" });
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

// ---- What is chosen.

const chosen = (id) => byId(id).value;

function fill(id, values, all) {
  const before = chosen(id);
  const options = [...(all ? [["", all]] : []), ...values.map((value) => [value, value])];
  byId(id).replaceChildren(...options.map(([value, text]) => element("option", text, { value })));
  if (values.includes(before)) byId(id).value = before;
}

// Those with the most records first.
function frequent(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) || 0) + 1);
  return [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a));
}

function matching(except = "") {
  return data.runs.filter((run) =>
    run.network === chosen("network") && run.machine === chosen("machine") &&
    (except === "images" || String(run.images) === chosen("images")) &&
    (!chosen("who") || run.who === chosen("who")));
}

const wanted = (row) => row.variant.toLowerCase().includes(chosen("variant").toLowerCase());

// The newest row of each variant; `key` may tell more apart.
function newest(runs, key = () => "") {
  const found = new Map();
  for (const run of runs) {
    for (const row of run.rows) {
      const name = `${run.who}\n${row.variant}\n${key(run)}`;
      if (timed(row) && wanted(row) && !found.has(name)) found.set(name, { run, row });
    }
  }
  return [...found.values()];
}

const nameOf = ({ run, row }) =>
  (run.who && !chosen("who") && byId("who").options.length > 2 ? `${run.who}: ` : "") + row.variant;

// ---- The views.

function drawLadder() {
  const rows = newest(matching()).sort((a, b) => sum(b.row.ms) - sum(a.row.ms));
  if (rows.length === 0) return empty("ladder", "No timed run of this choice.");
  const { svg, width } = canvas("ladder", 54 + 21 * rows.length,
    `The sum of the op times of ${rows.length} variants; the least is ${number(sum(rows.at(-1).row.ms))} ms by ${nameOf(rows.at(-1))}`);
  const left = Math.min(width * 0.44, 8 + 7 * Math.max(...rows.map((one) => nameOf(one).length)));
  // Speedups are over the naive variant, if it is there.
  const base = sum((rows.find((one) => one.row.variant === "naive") || rows[0]).row.ms);
  const box = { left, right: width - 130, top: 4, bottom: 10 + 21 * rows.length };
  const x = logScale(rows.map((one) => sum(one.row.ms)), left + 8, box.right, 1.15);
  axes(svg, x, null, { ...box, right: width }, "sum of the op times, ms (logarithmic)");
  rows.forEach((one, i) => {
    const y = 18 + 21 * i, total = sum(one.row.ms);
    const name = nameOf(one);
    write(svg, 0, y + 4, shorten(name, Math.floor(left / 7)));
    const spread = one.row.low ? `, quartiles ${number(one.row.low)} to ${number(one.row.high)}` : "";
    mark(svg, x.at(total), y, one.row,
      `${name}: ${one.row.ms.map(number).join(" + ")} ms${spread}, class ${one.row.class}, ${one.run.path}`);
    write(svg, x.at(total) + 9, y + 4, `${number(total)} ms, ${number(base / total)}×`);
  });
}

function drawRoofline() {
  const peaks = data.machines[chosen("machine")];
  const points = newest(matching()).flatMap((one) => one.row.ms.map((ms, i) => ({
    ...one, layer: i + 1, rate: one.row.gflop[i] / ms, intensity: one.row.gflop[i] * 1e3 / one.row.mb[i],
  })));
  if (points.length === 0) return empty("roofline", "No timed run of this choice.");
  const columns = frequent(points.map((point) => point.intensity));
  const most = Math.max(...columns.map((column) => points.filter((p) => p.intensity === column).length));
  const height = Math.max(320, 90 + 15 * most);
  const { svg, width } = canvas("roofline", height, "Roofline: TFLOP per second against FLOP per byte");
  const box = { left: 46, right: width - 4, top: 26, bottom: height - 40 };
  const roofs = peaks ? [["tensor cores, halves", peaks.fp16], ["class fp32 by halves", peaks.fp32],
                         ["float32 units", peaks.fp32_units]].filter((roof) => roof[1]) : [];
  const spread = width < 500 ? 12 : 5;
  const slope = peaks && peaks.memory ? peaks.memory * 1e-3 : 0;
  const x = logScale([...points.map((p) => p.intensity),
                      ...(slope ? roofs.map((roof) => roof[1] / slope) : [])], box.left, box.right, spread);
  const y = logScale([...points.map((p) => p.rate), ...roofs.map((roof) => roof[1])], box.bottom, box.top, 1.4);
  axes(svg, x, y, box, "FLOP per byte that must move", "TFLOP/s");
  const clip = (value) => Math.min(Math.max(value, box.left), box.right);
  for (const [name, rate] of roofs) {
    line(svg, clip(slope ? x.at(rate / slope) : box.left), y.at(rate), box.right, y.at(rate), "green", { "stroke-width": 1.8 });
    write(svg, box.right, y.at(rate) - 5, `${name}: ${number(rate)}`, { ink: "green", "text-anchor": "end" });
  }
  if (slope && roofs.length > 0) {
    const begin = Math.max(x.low, y.low / slope), end = Math.max(...roofs.map((roof) => roof[1])) / slope;
    line(svg, x.at(begin), y.at(begin * slope), x.at(end), y.at(end * slope), "green", { "stroke-width": 1.8 });
    write(svg, box.left + 6, box.top + 30, `memory: ${number(slope)} TB/s`, { ink: "green" });
  }
  const last = Math.max(...columns);
  for (const column of columns) {
    const here = points.filter((point) => point.intensity === column);
    for (const point of here) {
      mark(svg, x.at(column), y.at(point.rate), point.row,
        `${nameOf(point)}, convolution ${point.layer}: ${number(point.rate)} TFLOP/s`);
    }
    names(svg, here.map((point) => ({
      x: x.at(column), y: y.at(point.rate), text: nameOf(point), left: column < last,
    })), box.bottom - 6);
  }
}

const kInks = ["blue", "orange", "green", "purple", "grey", "text"];

function drawBatches() {
  const rows = newest(matching("images"), (run) => run.images);
  const curves = new Map();
  for (const one of rows) {
    const name = nameOf(one);
    if (!curves.has(name)) curves.set(name, []);
    curves.get(name).push([one.run.images, sum(one.row.ms)]);
  }
  for (const [name, points] of curves) {
    if (new Set(points.map((point) => point[0])).size < 2) curves.delete(name);
    points.sort((a, b) => a[0] - b[0]);
  }
  if (curves.size === 0) return empty("batches", "No variant was timed with two numbers of images.");
  const height = Math.max(320, 90 + 15 * curves.size);
  const { svg, width } = canvas("batches", height, "The sum of the op times over the number of images");
  const all = [...curves.values()].flat();
  const box = { left: 52, right: width - Math.min(170, width * 0.4), top: 26, bottom: height - 40 };
  const x = logScale(all.map((point) => point[0]), box.left, box.right, 1.15);
  const y = logScale(all.map((point) => point[1]), box.bottom, box.top);
  axes(svg, x, y, box, "images (logarithmic)", "sum of the op times, ms (logarithmic)");
  const labels = [];
  let i = 0;
  for (const [name, points] of curves) {
    const ink = kInks[i++ % kInks.length];
    shape(svg, "path", {
      d: points.map(([n, ms], k) => `${k ? "L" : "M"}${x.at(n)} ${y.at(ms)}`).join(""),
      class: `s-${ink}`, fill: "none", "stroke-width": 1.8,
    });
    for (const [n, ms] of points) {
      shape(svg, "circle", { cx: x.at(n), cy: y.at(ms), r: 4, class: `f-${ink}` },
        `${name}: ${number(ms)} ms with ${number(n)} images, ${number(ms / n * 1e3)} µs each`);
    }
    labels.push({ x: x.at(points.at(-1)[0]), y: y.at(points.at(-1)[1]), text: name, ink });
  }
  names(svg, labels, box.bottom);
}

function drawAccuracy() {
  const rows = newest(matching());
  const points = rows.filter((one) => one.row.error > 0);
  if (points.length < 2) {
    empty("accuracy", "Fewer than two variants of this choice have a measured error.");
  } else {
    const { svg, width } = canvas("accuracy", 340, "Relative error against the sum of the op times");
    const box = { left: 60, right: width - Math.min(150, width * 0.36), top: 26, bottom: 300 };
    const x = logScale(points.map((one) => sum(one.row.ms)), box.left, box.right);
    const y = logScale(points.map((one) => one.row.error), box.bottom, box.top, 2);
    axes(svg, x, { ...y, ticks: [] }, box, "sum of the op times, ms (logarithmic)", "relative error (logarithmic)");
    for (const value of y.ticks.filter((tick) => Number.isInteger(Math.log10(tick)) || y.ticks.length < 6)) {
      line(svg, box.left, y.at(value), box.right, y.at(value), "grid");
      write(svg, box.left - 6, y.at(value) + 4, value.toExponential(0), { ink: "muted", "text-anchor": "end" });
    }
    for (const one of points) {
      mark(svg, x.at(sum(one.row.ms)), y.at(one.row.error), one.row,
        `${nameOf(one)}: error ${one.row.error.toExponential(1)}, ${number(sum(one.row.ms))} ms, class ${one.row.class}`);
    }
    // Names of those that no other is both faster and more accurate than.
    const front = points.filter((one) => !points.some((other) =>
      sum(other.row.ms) < sum(one.row.ms) && other.row.error <= one.row.error));
    names(svg, front.map((one) => ({ x: x.at(sum(one.row.ms)), y: y.at(one.row.error), text: nameOf(one) })), box.bottom);
  }
  table("answers", ["variant", "class", "error", "right answers", "expected"], rows.map((one) => {
    const wrong = Math.abs(one.row.correct - (one.run.expected ?? one.row.correct)) > one.row.allowed;
    return [nameOf(one), one.row.class, one.row.error ? one.row.error.toExponential(1) : "–",
            (wrong ? "✗ " : "") + number(one.row.correct),
            one.run.expected === undefined ? "–" : number(one.run.expected)];
  }));
}

function drawPair() {
  const [a, b] = [data.runs[chosen("left")], data.runs[chosen("right")]];
  if (!a || !b) return empty("pair", "No timed run of this choice.");
  const rows = [];
  for (const row of a.rows.filter(timed)) {
    const other = b.rows.find((one) => one.variant === row.variant && timed(one)) ||
        (a.rows.length === 1 && b.rows.length === 1 && timed(b.rows[0]) ? b.rows[0] : null);
    if (!other) continue;
    const spread = !row.low || !other.low ? "spread not known"
        : row.high < other.low || other.high < row.low ? "beyond the spread" : "within the spread";
    rows.push([row.variant === other.variant ? row.variant : `${row.variant} : ${other.variant}`,
               row.ms.map(number).join(" + "), other.ms.map(number).join(" + "),
               number(sum(row.ms)), number(sum(other.ms)), `${number(sum(row.ms) / sum(other.ms))}×`, spread]);
  }
  if (rows.length === 0) return empty("pair", "The two runs have no timed variant in common.");
  const apart = a.images === b.images ? "" : ` (${number(a.images)} and ${number(b.images)} images)`;
  table("pair", [`variant${apart}`, "A, ms", "B, ms", "A, sum", "B, sum", "B is faster by", "the difference is"], rows);
}

function drawRecords() {
  const rows = matching("images").map((run) => [
    run.path, run.who || "–", run.milestone, number(run.images),
    run.traced ? "traced" : run.rows.length === 1 ? run.rows[0].variant : `${run.rows.length} variants`,
    run.rows.length === 1 && timed(run.rows[0]) ? number(sum(run.rows[0].ms)) : "–",
    run.correct === undefined ? "–" : (run.count_error ? "✗ " : "") + number(run.correct),
    number(run.seconds), run.started, run.revision,
  ]);
  table("records", ["record", "participant", "milestone", "images", "variant", "sum, ms", "right", "program, s",
                    "started", "revision"], rows);
}

function draw() {
  for (const view of [drawLadder, drawRoofline, drawBatches, drawAccuracy, drawRecords]) view();
  byId("said").textContent = `${matching("images").length} records of ${chosen("network")} on ${chosen("machine")}.`;
}

// What can be chosen depends on what is chosen before it.
function choose() {
  fill("machine", frequent(data.runs.filter((run) => run.network === chosen("network")).map((run) => run.machine)));
  const runs = data.runs.filter((run) => run.network === chosen("network") && run.machine === chosen("machine"));
  fill("who", frequent(runs.map((run) => run.who)).filter((who) => who).sort(), "all");
  const rows = new Map();
  for (const run of runs) {
    const count = run.rows.filter(timed).length;
    if (count > 0) rows.set(String(run.images), (rows.get(String(run.images)) || 0) + count);
  }
  fill("images", [...rows.keys()].sort((a, b) => rows.get(b) - rows.get(a) || b - a));
  // Runs of many variants first: they have the most in common.
  const timedRuns = runs.filter((run) => run.rows.some(timed))
      .sort((a, b) => b.rows.length - a.rows.length || b.images - a.images);
  for (const [id, at] of [["left", 0], ["right", 1]]) {
    const before = chosen(id);
    byId(id).replaceChildren(...timedRuns.map((run) =>
      element("option", `${run.path}, ${run.milestone}, ${number(run.images)} images`, { value: data.runs.indexOf(run) })));
    byId(id).selectedIndex = Math.min(at, timedRuns.length - 1);
    if (timedRuns.some((run) => String(data.runs.indexOf(run)) === before)) byId(id).value = before;
  }
  drawPair();
  draw();
}

fill("network", frequent(data.runs.map((run) => run.network)));
for (const id of ["network", "machine"]) byId(id).addEventListener("change", choose);
for (const id of ["images", "who"]) byId(id).addEventListener("change", draw);
for (const id of ["left", "right"]) byId(id).addEventListener("change", drawPair);
byId("variant").addEventListener("input", draw);
window.addEventListener("resize", draw);
choose();
