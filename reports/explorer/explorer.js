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

// The times of a row that the chosen convolution, or all of them, have; 0 where
// one was not timed.
const times = (row) => chosen("layer") ? [row.ms[chosen("layer") - 1] || 0] : row.ms;
const total = (row) => sum(times(row));
const timed = (row) => !row.failure && row.ms.length > 0 && times(row).every((ms) => ms > 0);
const anyTimed = (run) => run.rows.some((row) => !row.failure && row.ms.some((ms) => ms > 0));
const what = () => chosen("layer") ? `op time of convolution ${chosen("layer")}` : "sum of the op times";

// Runs of milestones and of benchmarks are measured in different ways.
const sourceOf = (run) => run.milestone === "bench" ? "benchmark" : "milestones";

const ofMachine = (one) => one.machine === chosen("machine") && (!chosen("who") || one.who === chosen("who"));

function matching(except = "") {
  return data.runs.filter((run) => ofMachine(run) && run.network === chosen("network") &&
    (except === "source" || sourceOf(run) === chosen("source")) &&
    (except || String(run.images) === chosen("images")));
}

const wanted = (row) => row.variant.toLowerCase().includes(chosen("variant").toLowerCase());

// The newest row of each variant; `key` may tell more apart.
function newest(runs, key = () => "") {
  const found = new Map();
  for (const run of runs) {
    for (const row of run.rows) {
      const name = `${run.who}\n${row.variant}\n${row.class}\n${key(run)}`;
      if (timed(row) && wanted(row) && !found.has(name)) found.set(name, { run, row, wrong: wrongOf(run, row) });
    }
  }
  return [...found.values()];
}

const nameOf = ({ run, row }) =>
  (run.who && !chosen("who") && byId("who").options.length > 2 ? `${run.who}: ` : "") + row.variant;

// ---- The views.

function drawLadder() {
  const rows = newest(matching()).sort((a, b) => total(b.row) - total(a.row));
  if (rows.length === 0) return empty("ladder", "No timed run of this choice.");
  const right = rows.filter((one) => !one.wrong), best = right.at(-1);
  const { svg, width } = canvas("ladder", 54 + 21 * rows.length, `The ${what()} of ${rows.length} variants` +
    (best ? `; the least is ${number(total(best.row))} ms by ${nameOf(best)}` : ""));
  const label = (one) => (one.wrong ? "✗ " : "") + nameOf(one);
  const left = Math.min(width * 0.44, 8 + 7 * Math.max(...rows.map((one) => label(one).length)));
  // Speedups are over the naive variant, if it is there.
  const base = best && total((right.find((one) => one.row.variant === "naive") || right[0]).row);
  const box = { left, right: width - 130, top: 4, bottom: 10 + 21 * rows.length };
  const x = logScale(rows.map((one) => total(one.row)), left + 8, box.right, 1.15);
  axes(svg, x, null, { ...box, right: width }, `${what()}, ms (logarithmic)`);
  rows.forEach((one, i) => {
    const y = 18 + 21 * i, ms = total(one.row);
    const name = nameOf(one);
    write(svg, 0, y + 4, shorten(label(one), Math.floor(left / 7)));
    const all = !chosen("layer");
    const spread = all && one.row.low ? `, quartiles ${number(one.row.low)} to ${number(one.row.high)}` : "";
    const kind = one.row.library ? "kernel time, " : "";
    mark(svg, x.at(ms), y, one.row,
      `${name}: ${times(one.row).map(number).join(" + ")} ms${spread}, ${kind}class ${one.row.class}, ${one.run.path}`, one.wrong);
    write(svg, x.at(ms) + 9, y + 4, one.wrong ? `${number(ms)} ms` : `${number(ms)} ms, ${number(base / ms)}×`);
  });
  explainWrong("ladder", rows);
}

function drawRoofline() {
  const peaks = data.machines[chosen("machine")];
  const points = newest(matching()).flatMap((one) => one.row.ms.map((ms, i) => ({
    ...one, layer: i + 1, rate: one.row.gflop[i] / ms, intensity: one.row.gflop[i] * 1e3 / one.row.mb[i],
  }))).filter((one) => one.rate > 0 && one.intensity > 0 && (!chosen("layer") || String(one.layer) === chosen("layer")));
  if (points.length === 0) return empty("roofline", "No timed run of this choice.");
  const columns = frequent(points.map((point) => point.intensity));
  const most = Math.max(...columns.map((column) => points.filter((p) => p.intensity === column).length));
  const height = Math.max(320, 90 + 15 * most);
  const { svg, width } = canvas("roofline", height, "Roofline: TFLOP per second against FLOP per byte");
  const box = { right: width - 4, top: 26, bottom: height - 40 };
  const roofs = peaks ? [["tensor cores, halves", peaks.fp16], ["class fp32 by halves", peaks.fp32],
                         ["float32 units", peaks.fp32_units]].filter((roof) => roof[1]) : [];
  const spread = width < 500 ? 12 : 5;
  const slope = peaks && peaks.memory ? peaks.memory * 1e-3 : 0;
  const y = logScale([...points.map((p) => p.rate), ...roofs.map((roof) => roof[1])], box.bottom, box.top, 1.4);
  box.left = Math.max(46, leftOf(y));
  const x = logScale([...points.map((p) => p.intensity),
                      ...(slope ? roofs.map((roof) => roof[1] / slope) : [])], box.left, box.right, spread);
  axes(svg, x, y, box, "FLOP per byte that must move", "TFLOP/s");
  const clip = (value) => Math.min(Math.max(value, box.left), box.right);
  for (const [name, rate] of roofs) {
    line(svg, clip(slope ? x.at(rate / slope) : box.left), y.at(rate), box.right, y.at(rate), "green", { "stroke-width": 1.8 });
    // Names of points need the room on a phone: those of the roofs stand below.
    write(svg, box.right, y.at(rate) - 5, width < 500 ? number(rate) : `${name}: ${number(rate)}`,
          { ink: "green", "text-anchor": "end" });
  }
  if (width < 500 && roofs.length > 0) {
    byId("roofline").append(element("p", `Roofs: ${roofs.map(([name, rate]) => `${number(rate)} ${name}`).join(", ")}.`));
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
        `${nameOf(point)}, convolution ${point.layer}: ${number(point.rate)} TFLOP/s`, point.wrong);
    }
    // Where there is little room, the fastest have their names.
    const named = width < 500 ? here.sort((a, b) => b.rate - a.rate).slice(0, 7) : here;
    names(svg, named.map((point) => ({
      x: x.at(column), y: y.at(point.rate), text: (point.wrong ? "✗ " : "") + nameOf(point), left: column < last,
    })), box.bottom - 6);
  }
  explainWrong("roofline", points);
}

const kInks = ["blue", "orange", "green", "purple", "grey", "text"];

function drawBatches() {
  const rows = newest(matching("images"), (run) => run.images);
  const curves = new Map();
  for (const one of rows) {
    const name = nameOf(one);
    if (!curves.has(name)) curves.set(name, []);
    curves.get(name).push([one.run.images, total(one.row), one.wrong]);
  }
  for (const [name, points] of curves) {
    if (new Set(points.map((point) => point[0])).size < 2) curves.delete(name);
    points.sort((a, b) => a[0] - b[0]);
  }
  if (curves.size === 0) return empty("batches", "No variant was timed with two numbers of images.");
  const height = Math.max(320, 90 + 15 * curves.size);
  const { svg, width } = canvas("batches", height, `The ${what()} over the number of images`);
  const all = [...curves.values()].flat();
  const box = { right: width - Math.min(170, width * 0.4), top: 26, bottom: height - 40 };
  const y = logScale(all.map((point) => point[1]), box.bottom, box.top);
  box.left = Math.max(52, leftOf(y));
  const x = logScale(all.map((point) => point[0]), box.left, box.right, 1.15);
  axes(svg, x, y, box, "images (logarithmic)", `${what()}, ms (logarithmic)`);
  const labels = [];
  let i = 0;
  for (const [name, points] of curves) {
    const ink = kInks[i++ % kInks.length];
    shape(svg, "path", {
      d: points.map(([n, ms], k) => `${k ? "L" : "M"}${x.at(n)} ${y.at(ms)}`).join(""),
      class: `s-${ink}`, fill: "none", "stroke-width": 1.8,
    });
    for (const [n, ms, wrong] of points) {
      const style = wrong ? { class: `s-${ink}`, fill: "none", "stroke-width": 1.6 } : { class: `f-${ink}` };
      shape(svg, "circle", { cx: x.at(n), cy: y.at(ms), r: 4, ...style },
        `${name}: ${number(ms)} ms with ${number(n)} images, ${number(ms / n * 1e3)} µs each` +
        (wrong ? `; wrong: ${wrong}` : ""));
    }
    labels.push({ x: x.at(points.at(-1)[0]), y: y.at(points.at(-1)[1]), text: name, ink });
  }
  names(svg, labels, box.bottom);
  explainWrong("batches", rows.filter((one) => curves.has(nameOf(one))));
}

function drawAccuracy() {
  const rows = newest(matching());
  const points = rows.filter((one) => one.row.error > 0);
  if (points.length < 2) {
    empty("accuracy", "Fewer than two variants of this choice have a measured error.");
  } else {
    const { svg, width } = canvas("accuracy", 340, `Relative error against the ${what()}`);
    const box = { left: 60, right: width - Math.min(150, width * 0.36), top: 26, bottom: 300 };
    const x = logScale(points.map((one) => total(one.row)), box.left, box.right);
    const y = logScale(points.map((one) => one.row.error), box.bottom, box.top, 2);
    axes(svg, x, { ...y, ticks: [] }, box, `${what()}, ms (logarithmic)`, "relative error (logarithmic)");
    for (const value of y.ticks.filter((tick) => Number.isInteger(Math.log10(tick)) || y.ticks.length < 6)) {
      line(svg, box.left, y.at(value), box.right, y.at(value), "grid");
      write(svg, box.left - 6, y.at(value) + 4, value.toExponential(0), { ink: "muted", "text-anchor": "end" });
    }
    for (const one of points) {
      mark(svg, x.at(total(one.row)), y.at(one.row.error), one.row,
        `${nameOf(one)}: error ${one.row.error.toExponential(1)}, ${number(total(one.row))} ms, class ${one.row.class}`, one.wrong);
    }
    // Names of those that no other is both faster and more accurate than.
    const right = points.filter((one) => !one.wrong);
    const front = right.filter((one) => !right.some((other) =>
      total(other.row) < total(one.row) && other.row.error <= one.row.error));
    names(svg, front.map((one) => ({ x: x.at(total(one.row)), y: y.at(one.row.error), text: nameOf(one) })), box.bottom);
    explainWrong("accuracy", points);
  }
  table("answers", ["variant", "class", "error", "right answers", "expected"], rows.map((one) => [
    nameOf(one), one.row.class, one.row.error ? one.row.error.toExponential(1) : "–",
    (one.wrong ? "✗ " : "") + (one.row.correct || one.row.wrong ? number(one.row.correct) : "–"),
    one.run.expected === undefined ? "–" : number(one.run.expected),
  ]));
}

// The worst outputs of every variant on families of data, of any network.
function drawContract() {
  const found = new Map();
  for (const contract of data.contracts.filter(ofMachine)) {
    for (const row of contract.rows.filter(wanted)) {
      if (!found.has(row.variant + row.class)) found.set(row.variant + row.class, row);
    }
  }
  if (found.size === 0) return empty("contract", "No benchmark of the accuracy on this machine.");
  table("contract", ["variant", "class", "families", "broken", "worst c", "allowed c", "on", "of layer"],
    [...found.values()].map((row) => [
      row.variant, row.class, number(row.families), number(row.broken),
      row.c === undefined ? "without bound" : number(row.c), number(row.allowed), row.family, row.layer,
    ]));
}

const kPaths = {
  host: "bytes in host memory to labels there",
  device: "bytes in device memory to labels there",
  floats: "floats in device memory to logits there",
};
const theWholes = () => data.wholes.filter((one) => ofMachine(one) && one.network === chosen("network"));

function drawWholes() {
  const found = new Map();
  const peer = (theWholes().find((one) => one.peer) || {}).peer;
  for (const whole of theWholes()) {
    for (const row of whole.rows.filter((one) => one.from === chosen("from"))) {
      const key = `${row.provider}\n${row.images}`;
      if (!found.has(key)) found.set(key, { whole, row });
    }
  }
  byId("calls").replaceChildren();
  if (found.size === 0) return empty("wholes", "No benchmark of this network as a whole on this machine.");
  const all = [...found.values()].sort((a, b) => a.row.images - b.row.images);
  const curves = new Map();
  for (const { row } of all) {
    const name = row.provider === "convlab" ? "Convlab" : peer || row.provider;
    if (!curves.has(name)) curves.set(name, []);
    curves.get(name).push(row);
  }
  const { svg, width } = canvas("wholes", 320, "The time of a call over the number of images");
  const box = { left: 56, right: width - Math.min(130, width * 0.3), top: 26, bottom: 280 };
  const x = logScale(all.map(({ row }) => row.images), box.left, box.right, 1.15);
  const y = logScale(all.flatMap(({ row }) => [row.least, row.p99]), box.bottom, box.top);
  axes(svg, x, y, box, "images (logarithmic)", width < 500 ? "time of a call, µs (logarithmic)"
      : "time of a call, µs: median, and least to 99th percentile (logarithmic)");
  const labels = [];
  for (const [name, rows] of curves) {
    const ink = name === "Convlab" ? "blue" : "orange";
    shape(svg, "path", {
      d: rows.map((row, k) => `${k ? "L" : "M"}${x.at(row.images)} ${y.at(row.p50)}`).join(""),
      class: `s-${ink}`, fill: "none", "stroke-width": 1.8,
    });
    for (const row of rows) {
      const [cx, cy] = [x.at(row.images), y.at(row.p50)];
      line(svg, cx, y.at(row.least), cx, y.at(row.p99), ink);
      const hover = `${name}, ${number(row.images)} images: ${number(row.p50)} µs, 99 % within ${number(row.p99)} µs`;
      if (ink === "blue") shape(svg, "circle", { cx, cy, r: 4, class: "f-blue" }, hover);
      else shape(svg, "rect", { x: cx - 4, y: cy - 4, width: 8, height: 8, class: "f-orange" }, hover);
    }
    labels.push({ x: x.at(rows.at(-1).images), y: y.at(rows.at(-1).p50), text: name, ink });
  }
  names(svg, labels, box.bottom);
  const ours = all.filter(({ row }) => row.provider === "convlab");
  table("calls", ["images", "median, µs", "90 %, µs", "99 %, µs", "images/s", `${peer || "library"}, µs`, "speedup", "record"],
    ours.map(({ whole, row }) => {
      const other = all.find((one) => one.row.provider !== "convlab" && one.row.images === row.images);
      return [number(row.images), number(row.p50), number(row.p90), number(row.p99), number(row.images / row.p50 * 1e6),
              other ? number(other.row.p50) : "–", other ? `${number(other.row.p50 / row.p50)}×` : "–", whole.path];
    }));
}

// ---- Two records.

// What a record has timed, in ms, by what can be compared.
function itemsOf(one) {
  const items = new Map();
  for (const row of one.rows) {
    if (row.from) {
      items.set(`${row.provider}, ${row.from}, ${number(row.images)} images`,
                { ms: [row.p50 / 1e3], low: row.least / 1e3, high: row.p90 / 1e3 });
    } else if (!row.failure && row.ms.length > 0 && row.ms.every((ms) => ms > 0)) {
      const half = row.iqr ? row.iqr / 2 : 0, ms = sum(row.ms);
      const name = items.has(row.variant) ? `${row.variant}, ${row.class}` : row.variant;
      items.set(name, { wrong: wrongOf(one, row), ms: row.ms, low: row.low || (half && ms - half), high: row.high || (half && ms + half) });
    }
  }
  return items;
}

const compared = () => [...data.runs.filter(anyTimed), ...data.wholes];

function drawPair() {
  const [a, b] = [compared()[chosen("left")], compared()[chosen("right")]];
  if (!a || !b) return empty("pair", "No timed run of this choice.");
  const [left, right] = [itemsOf(a), itemsOf(b)];
  const rows = [];
  for (const [name, one] of left) {
    const isPair = left.size === 1 && right.size === 1;
    const [otherName, other] = right.has(name) ? [name, right.get(name)] : isPair ? [...right][0] : [];
    if (!other) continue;
    const spread = !one.low || !other.low ? "spread not known"
        : one.high < other.low || other.high < one.low ? "beyond the spread" : "within the spread";
    const crossed = (item, text) => (item.wrong ? "✗ " : "") + text;
    const speedup = one.wrong || other.wrong ? "–" : `${number(sum(one.ms) / sum(other.ms))}×`;
    rows.push([name === otherName ? name : `${name} : ${otherName}`,
               one.ms.map(number).join(" + "), other.ms.map(number).join(" + "),
               crossed(one, number(sum(one.ms))), crossed(other, number(sum(other.ms))), speedup, spread]);
  }
  if (rows.length === 0) return empty("pair", "The two have nothing timed in common.");
  const apart = a.images === b.images ? "" : ` (${number(a.images)} and ${number(b.images)} images)`;
  table("pair", [`variant${apart}`, "A, ms", "B, ms", "A, sum", "B, sum", "B is faster by", "the difference is"], rows);
}

function drawRecords() {
  const rows = matching("source").map((run) => {
    const one = run.rows.length === 1 ? run.rows[0] : null;
    return [
      run.path, run.who || "–", run.milestone, number(run.images),
      run.traced ? "traced" : one ? one.variant : `${run.rows.length} variants`,
      one && timed(one) ? number(total(one)) : "–",
      run.correct === undefined ? "–" : (run.count_error ? "✗ " : "") + number(run.correct),
      run.seconds ? number(run.seconds) : "–", run.started, run.revision,
    ];
  });
  for (const whole of theWholes()) {
    rows.push([whole.path, whole.who || "–", "whole network", "–", "–", "–", "–", "–", whole.started, whole.revision]);
  }
  table("records", ["record", "participant", "milestone", "images", "variant", "ms", "right", "program, s",
                    "started", "revision"], rows);
}

function draw() {
  const views = [drawLadder, drawRoofline, drawBatches, drawAccuracy, drawContract, drawWholes, drawRecords];
  for (const view of views) view();
  const records = new Set([...matching("source"), ...theWholes()].map((one) => one.path));
  byId("said").textContent = `${records.size} records of ${chosen("network")} on ${chosen("machine")}.`;
}

// ---- What can be chosen depends on what is chosen before it.

function chooseImages() {
  const runs = matching("images").filter(anyTimed);
  const rows = new Map();
  for (const run of runs) rows.set(String(run.images), (rows.get(String(run.images)) || 0) + run.rows.length);
  fill("images", [...rows.keys()].sort((a, b) => rows.get(b) - rows.get(a) || b - a));
  const layers = Math.max(1, ...runs.flatMap((run) => run.rows.map((row) => row.ms.length)));
  fill("layer", layers < 2 ? [] : Array.from({ length: layers }, (_, i) => String(i + 1)), "all");
  draw();
}

function choose() {
  const everything = [...data.runs, ...data.wholes].filter((one) => one.network === chosen("network"));
  fill("machine", frequent(everything.map((one) => one.machine)));
  const here = everything.filter((one) => one.machine === chosen("machine"));
  fill("who", frequent(here.map((one) => one.who)).filter((who) => who).sort(), "all");
  fill("source", frequent(here.filter((one) => one.milestone && anyTimed(one)).map(sourceOf)).sort().reverse());
  fill("from", Object.keys(kPaths).filter((path) => here.some((one) => one.rows.some((row) => row.from === path))));
  for (const option of byId("from").options) option.textContent = kPaths[option.value];
  byId("from").closest("p").hidden = byId("from").options.length === 0;
  // Runs of many variants first: they have the most in common.
  const all = compared();
  const timedRuns = here.filter((one) => all.includes(one))
      .sort((a, b) => (b.milestone ? b.rows.length : 0) - (a.milestone ? a.rows.length : 0) || b.images - a.images);
  for (const [id, at] of [["left", 0], ["right", 1]]) {
    const before = chosen(id);
    byId(id).replaceChildren(...timedRuns.map((run) => element("option",
      `${run.path}, ${run.milestone ? `${run.milestone}, ${number(run.images)} images` : "whole network"}`,
      { value: all.indexOf(run) })));
    byId(id).selectedIndex = Math.min(at, timedRuns.length - 1);
    if (timedRuns.some((run) => String(all.indexOf(run)) === before)) byId(id).value = before;
  }
  byId("left").closest("p").hidden = timedRuns.length === 0;
  drawPair();
  chooseImages();
}

// Those without a run of a milestone, as single convolutions, last.
const networks = frequent([...data.runs, ...data.wholes].map((one) => one.network));
fill("network", networks.sort((a, b) => a.includes(",") - b.includes(",")));
for (const id of ["network", "machine"]) byId(id).addEventListener("change", choose);
for (const id of ["source", "who"]) byId(id).addEventListener("change", chooseImages);
for (const id of ["images", "layer"]) byId(id).addEventListener("change", draw);
byId("from").addEventListener("change", drawWholes);
for (const id of ["left", "right"]) byId(id).addEventListener("change", drawPair);
byId("variant").addEventListener("input", draw);
window.addEventListener("resize", draw);
choose();
