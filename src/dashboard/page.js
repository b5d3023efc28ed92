// Asks for the samples it lacks, once a second, and draws them. Texts of the server are only ever
// set as text, never as markup.
"use strict";

const HOUR = 3600;
const byId = (id) => document.getElementById(id);
const state = { began: 0, next: 0, fields: {}, samples: [], events: [], failed: false };

// What a sample says of a field; null when the server does not have it.
const at = (sample, name) => sample.values[state.fields[name]] ?? null;

// The rate of a counter between two samples, each second.
function rate(name, scale = 1) {
  return (sample, before) => {
    if (!before) return null;
    const [now, then] = [at(sample, name), at(before, name)];
    const seconds = (sample.time - before.time) / 1000;
    if (now === null || then === null || seconds <= 0) return null;
    return Math.max(0, now - then) / seconds * scale;
  };
}
const level = (name, scale = 1) => (sample) => at(sample, name) === null ? null : at(sample, name) * scale;
const ratio = (over, under) => (sample, before) => {
  const [a, b] = [rate(over)(sample, before), rate(under)(sample, before)];
  return a === null || b === null || b === 0 ? null : a / b;
};
const sum = (...rates) => (sample, before) => rates.reduce((all, each) => {
  const more = each(sample, before);
  return more === null ? all : (all ?? 0) + more;
}, null);
const written = (...reasons) => sum(...reasons.map((reason) => rate("Untorn_pages_written_for_" + reason)));
const time = (kind) => rate(`Untorn_time_${kind}_us`, 1 / 1000);
const clean = (sample) => {
  const pages = (state) => at(sample, "Innodb_buffer_pool_pages_" + state);
  return Math.max(0, pages("data") - pages("dirty"));
};
const fromFiles = (sample, before) => {
  const reads = rate("Innodb_buffer_pool_reads")(sample, before);
  const hits = rate("Untorn_bpe_hits")(sample, before);
  return reads === null ? null : Math.max(0, reads - (hits ?? 0));
};
const tierRate = (sample, before) => {
  const [hits, misses] = [rate("Untorn_bpe_hits")(sample, before), rate("Untorn_bpe_misses")(sample, before)];
  return hits === null || hits + misses === 0 ? null : hits / (hits + misses);
};
// Not an embedded database.
const isServer = (sample) => at(sample, "Questions") !== null;
const hasTier = (sample) => at(sample, "Untorn_bpe_pages_max") > 0;

function short(value, units, step) {
  if (value === null) return "–";
  let unit = 0;
  while (Math.abs(value) >= step * 0.9995 && unit < units.length - 1) { value /= step; unit += 1; }
  const digits = Math.abs(value) >= 100 || Number.isInteger(value) ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return String(Number(value.toFixed(digits))) + units[unit];
}
const count = (value) => short(value, ["", " k", " M", " G"], 1000);
const bytes = (value) => short(value, [" B", " KiB", " MiB", " GiB", " TiB"], 1024);
const milliseconds = (value) =>
  value === null ? "–" : value < 1000 ? count(value) + " ms" : count(value / 1000) + " s";
const microseconds = (value) =>
  value === null ? "–" : value < 1000 ? count(value) + " µs" : milliseconds(value / 1000);
const percent = (value) => value === null ? "–" : (value * 100).toFixed(1) + " %";

// stack: the values of a moment lie on each other. when: only if there is something to show. right: the unit
// of the lines with `true`, which have their scale on the right and are dotted.
const CHARTS = [
  { title: "Transactions a second, and how long they take", unit: count, right: microseconds, lines: [
    ["commits", rate("Untorn_commits")], ["rollbacks", rate("Untorn_rollbacks")],
    ["half of them at most", level("transaction_p50_us"), true],
    ["99 % at most", level("transaction_p99_us"), true]] },
  { title: "Statements a second", unit: count, when: isServer, lines: [["statements", rate("Questions")]] },
  { title: "A statement takes", unit: microseconds, when: isServer, lines: [
    ["half of them at most", level("statement_p50_us")], ["99 % at most", level("statement_p99_us")]] },
  { title: "A commit takes", unit: microseconds, lines: [
    ["half of them at most", level("commit_p50_us")], ["99 % at most", level("commit_p99_us")]] },
  { title: "Checkpoint age", unit: bytes, lines: [
    ["age", level("Innodb_checkpoint_age")], ["steered for", level("Untorn_checkpoint_age_goal")],
    ["for the recovery target", level("Untorn_checkpoint_age_limit")],
    ["maximum", level("Innodb_checkpoint_max_age")]] },
  { title: "Restart would take", unit: milliseconds, lines: [
    ["estimate", level("Untorn_recovery_estimate_ms")], ["target", level("Untorn_recovery_target_ms")]] },
  { title: "Page writes a second, by way", unit: count, stack: true, lines: [
    ["atomic", rate("Untorn_pages_written_atomic")], ["doublewrite", rate("Innodb_dblwr_pages_written")],
    ["made again from the log", rate("Untorn_pages_written_without_copy")],
    ["unprotected", rate("Untorn_pages_written_plain")]] },
  { title: "Page writes a second, by reason", unit: count, stack: true, lines: [
    ["age of the log", written("age")], ["too many dirty", written("dirty")],
    ["log nearly full", written("log_short")], ["time to spare", written("ahead", "idle")],
    ["frames wanted", written("frames")], ["all (stop, checkpoint)", written("all")],
    ["tablespace, resize", written("tablespace", "resize")]] },
  { title: "Where sessions' time goes, each second", unit: milliseconds, stack: true, when: isServer, lines: [
    ["processor", time("cpu")], ["row locks", time("row_lock")], ["log sync", time("log_sync")],
    ["page reads", time("page_read")], ["free page", time("free_page")], ["log room", time("log_room")],
    ["tables in use", time("metadata_lock")], ["latches", time("latch")]] },
  { title: "Bytes written for each transaction", unit: bytes, stack: true, lines: [
    ["redo", ratio("Untorn_bytes_written_redo", "Untorn_commits")],
    ["pages", ratio("Untorn_bytes_written_data", "Untorn_commits")],
    ["doublewrite", ratio("Untorn_bytes_written_doublewrite", "Untorn_commits")],
    ["undo", ratio("Untorn_bytes_written_undo", "Untorn_commits")],
    ["tier", ratio("Untorn_bytes_written_tier", "Untorn_commits")]] },
  { title: "Buffer pool, pages", unit: count, stack: true, lines: [
    ["dirty", level("Innodb_buffer_pool_pages_dirty")], ["clean", clean],
    ["free", level("Innodb_buffer_pool_pages_free")]] },
  { title: "Pages read a second", unit: count, stack: true, lines: [
    ["from files", fromFiles], ["from the tier", rate("Untorn_bpe_hits")]] },
  { title: "Tier hits, and at other sizes", unit: percent, when: hasTier, lines: [
    ["now", tierRate], ["half the size", level("Untorn_bpe_hit_ratio_half_size")],
    ["twice the size", level("Untorn_bpe_hit_ratio_twice_size")]] },
  { title: "Log syncs a second", unit: count, lines: [["syncs", rate("Innodb_os_log_fsyncs")]] },
  { title: "Waits a second", unit: count, lines: [
    ["row locks", rate("Innodb_row_lock_waits")], ["log room", rate("Untorn_log_room_waits")],
    ["log buffer", rate("Innodb_log_waits")], ["free page", rate("Innodb_buffer_pool_wait_free")],
    ["deadlocks", rate("Innodb_deadlocks")]] },
  { title: "History list length", unit: count, lines: [
    ["transactions", level("Innodb_history_list_length")]] },
  { title: "Roll back after the crash", unit: count,
    when: () => state.samples.some((s) => at(s, "Untorn_unfinished_undo_records") > 0), lines: [
    ["undo records left", level("Untorn_unfinished_undo_records")]] },
];
const FIGURES = [
  ["commits/s", rate("Untorn_commits"), count], ["statements/s", rate("Questions"), count],
  ["connections", level("Threads_connected"), count], ["running", level("Threads_running"), count],
  ["transactions open", level("Untorn_transactions_active"), count],
  ["wait for rows", level("Innodb_row_lock_current_waits"), count],
  ["restart would take", level("Untorn_recovery_estimate_ms"), milliseconds],
  ["pool hits", (s, b) => { const [m, r] = [rate("Innodb_buffer_pool_reads")(s, b),
    rate("Innodb_buffer_pool_read_requests")(s, b)]; return r ? Math.max(0, 1 - m / r) : null; }, percent],
];

function element(kind, text, parent, className) {
  const made = document.createElement(kind);
  if (text !== null) made.textContent = text;
  if (className) made.className = className;
  if (parent) parent.append(made);
  return made;
}

for (const chart of CHARTS) {
  chart.card = element("div", null, byId("charts"), "card");
  element("h2", chart.title, chart.card);
  chart.canvas = element("canvas", null, chart.card);
  chart.canvas.setAttribute("role", "img");
  chart.canvas.setAttribute("aria-label", chart.title);
  const legend = element("div", null, chart.card, "legend");
  chart.values = chart.lines.map(([name], index) => {
    const entry = element("span", null, legend);
    element("i", null, entry).style.background = `var(--c${index})`;
    entry.append(name + " ");
    return element("b", "–", entry);
  });
}
const figures = FIGURES.map(([name]) => {
  const box = element("div", null, byId("figures"));
  const value = element("b", "–", box);
  element("span", name, box);
  return value;
});

// A round number not below this one.
function above(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 2.5, 5, 10].map((step) => step * power).find((step) => step >= value * 0.9999) ?? value;
}

function draw(chart, colors, span, now) {
  const { canvas } = chart;
  const [width, height, dense] = [canvas.clientWidth, canvas.clientHeight, window.devicePixelRatio || 1];
  if (width === 0) return;
  canvas.width = Math.round(width * dense);
  canvas.height = Math.round(height * dense);
  const pen = canvas.getContext("2d");
  pen.scale(dense, dense);
  const [left, right, top, bottom] = [58, chart.right ? 56 : 6, 12, 18];
  const samples = state.samples.filter((sample) => sample.time >= now - span * 1000 - 2000);
  const series = chart.lines.map(([, value]) => samples.map((sample, i) => value(sample, samples[i - 1])));
  if (chart.stack) {
    for (let i = 1; i < series.length; i++) {
      const below = series[i - 1];
      series[i] = series[i].map((value, k) => value === null ? below[k] : value + (below[k] ?? 0));
    }
  }
  const isRight = chart.lines.map(([, , onRight]) => onRight === true);
  const scale = (ofRight) => {
    const values = series.filter((_, i) => isRight[i] === ofRight).flat();
    const highest = values.reduce((most, value) => Math.max(most, value ?? 0), 0);
    // Round in the unit that it is written in.
    const step = !ofRight && chart.unit === bytes ? 1024 : 1;
    const unit = step === 1 ? 1 : step ** Math.floor(Math.log(Math.max(1, highest)) / Math.log(step));
    return above(highest / unit) * unit;
  };
  const [most, mostRight] = [scale(false), scale(true)];
  const x = (time) => left + (width - left - right) * (1 - (now - time) / (span * 1000));
  const y = (value, of = most) => top + (height - top - bottom) * (1 - value / of);
  pen.font = "11px system-ui, sans-serif";
  pen.fillStyle = colors.soft;
  pen.strokeStyle = colors.line;
  pen.lineWidth = 1;
  pen.textAlign = "right";
  for (const part of [0, 0.5, 1]) {
    const place = Math.round(y(most * part)) + 0.5;
    pen.beginPath(); pen.moveTo(left, place); pen.lineTo(width - right, place); pen.stroke();
    pen.fillText(chart.unit(most * part), left - 5, place + 4);
    if (chart.right) {
      pen.textAlign = "left";
      pen.fillText(chart.right(mostRight * part), width - right + 5, place + 4);
      pen.textAlign = "right";
    }
  }
  for (const part of [0, 0.5, 1]) {
    pen.textAlign = ["left", "center", "right"][part * 2];
    const time = new Date(now - span * 1000 * (1 - part));
    pen.fillText(time.toLocaleTimeString("en-GB"), left + (width - left - right) * part, height - 4);
  }
  pen.save();
  pen.beginPath(); pen.rect(left, top - 2, width - left - right, height - top - bottom + 4); pen.clip();
  chart.points = 0;
  for (let i = series.length - 1; i >= 0; i--) {
    pen.strokeStyle = pen.fillStyle = colors.lines[i];
    let run = [];
    const finish = () => {
      if (run.length === 0) return;
      if (chart.stack) {
        pen.beginPath();
        run.forEach(([px, py]) => pen.lineTo(px, py));
        pen.lineTo(run[run.length - 1][0], y(0)); pen.lineTo(run[0][0], y(0));
        pen.fill();
      } else {
        pen.lineWidth = 1.6;
        pen.setLineDash(isRight[i] ? [2, 2] : []);
        pen.beginPath();
        run.forEach(([px, py]) => pen.lineTo(px, py));
        pen.stroke();
        pen.setLineDash([]);
      }
      run = [];
    };
    series[i].forEach((value, k) => {
      if (value === null) return finish();
      chart.points += 1;
      run.push([x(samples[k].time), y(value, isRight[i] ? mostRight : most)]);
    });
    finish();
  }
  for (const event of state.events) {
    if (event.unix_ms < now - span * 1000) continue;
    const place = Math.round(x(event.unix_ms)) + 0.5;
    pen.setLineDash([3, 3]);
    pen.lineWidth = 1;
    pen.strokeStyle = event.kind === "stall" || event.kind === "damage" ? colors.bad : colors.ink;
    pen.beginPath(); pen.moveTo(place, top); pen.lineTo(place, height - bottom); pen.stroke();
    pen.setLineDash([]);
  }
  pen.restore();
  canvas.dataset.points = String(chart.points);
}

function paint() {
  const last = state.samples[state.samples.length - 1];
  if (!last) return;
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue("--" + name).trim();
  const colors = { soft: color("soft"), line: color("line"), bad: color("bad"), ink: color("ink"),
    lines: [0, 1, 2, 3, 4, 5, 6, 7].map((i) => color("c" + i)) };
  const before = state.samples[state.samples.length - 2];
  FIGURES.forEach(([, value, unit], i) => {
    const figure = value(last, before);
    figures[i].textContent = unit(figure);
    // What an embedded database does not have.
    figures[i].parentElement.hidden = figure === null && state.samples.length > 1;
  });
  for (const chart of CHARTS) {
    chart.card.hidden = chart.when ? !chart.when(last) : false;
    if (chart.card.hidden) continue;
    draw(chart, colors, Number(byId("span").value), last.time);
    chart.lines.forEach(([, value, onRight], i) => {
      chart.values[i].textContent = (onRight ? chart.right : chart.unit)(value(last, before));
    });
  }
}

function table(id, heads, rows, empty) {
  const place = byId(id);
  const scrolled = place.scrollTop;
  place.textContent = "";
  if (rows.length === 0) { element("p", empty, place, "empty"); return; }
  const made = element("table", null, place);
  const head = element("tr", null, element("thead", null, made));
  heads.forEach((name) => element("th", name, head));
  const body = element("tbody", null, made);
  for (const row of rows) {
    const line = element("tr", null, body);
    // Paths and statements may break anywhere, a time or a word may not.
    for (const cell of row.map(String)) element("td", cell, line, cell.length <= 12 ? "word" : null);
  }
  place.scrollTop = scrolled;
}

function lists(reply) {
  const now = state.samples[state.samples.length - 1]?.time ?? 0;
  const who = (party) => `${party.connection} (${party.user || "no session"})`;
  const what = (party) => party.statement || "(no statement)";
  table("waits", ["waits", "its statement", "lock", "for", "now runs", "since", "wait for it"],
    reply.waits.map(({ waiting, blocking, ...wait }) => [
      who(waiting), what(waiting), `${wait.table} ${wait.index} ${wait.lock}`, who(blocking), what(blocking),
      wait.since_unix_ms === null ? "–" : milliseconds(Math.max(0, now - wait.since_unix_ms)), wait.behind,
    ]), "Nobody waits for a row or a table.");
  const pages = (state.samples.length && at(state.samples[state.samples.length - 1],
    "Innodb_buffer_pool_pages_data")) || 0;
  table("pool", ["table and index", "of the pool", "pages, about", "of them dirty"], reply.pool.map((part) => [
    part.name, percent(part.share), count(Math.round(part.share * pages)), percent(part.dirty),
  ]), "No page was found.");
  table("events", ["when", "what", ""], state.events.slice(-100).reverse().map((event) => [
    new Date(event.unix_ms).toLocaleTimeString("en-GB"), event.kind, event.text]), "Nothing happened.");
  const more = reply.files_total - reply.files.length;
  const files = reply.files.map((file) => [file.file, file.way, file.verdict, file.reason]);
  if (more > 0) files.push([`and ${more} more`, "", "", ""]);
  table("files", ["file", "written", "atomic writes by", "why"], files, "No file is open.");
}

function take(reply) {
  if (reply.began_unix_ms !== state.began) {
    Object.assign(state, { began: reply.began_unix_ms, next: 0, samples: [], events: [] });
    if (reply.first > 1 && reply.samples.length < HOUR) return false;
  }
  reply.fields.forEach((name, index) => { state.fields[name] = index; });
  for (const [time, values] of reply.samples) {
    // The clock was set back: what came before would lie to the right of now.
    if (time < state.samples.at(-1)?.time) state.samples = [];
    state.samples.push({ time, values });
  }
  state.next = reply.first + reply.samples.length - 1;
  state.samples.splice(0, state.samples.length - HOUR);
  const now = state.samples.at(-1)?.time ?? Infinity;
  state.events = state.events.concat(reply.events).filter((event) => event.unix_ms <= now).slice(-500);
  return true;
}

async function poll() {
  let again = 1000;
  try {
    const response = await fetch("/api/samples?since=" + state.next, { cache: "no-store" });
    if (!response.ok) throw new Error(String(response.status));
    const reply = await response.json();
    if (take(reply)) { paint(); lists(reply); } else { again = 0; }
    const up = state.samples.length;
    const resize = reply.texts.Innodb_buffer_pool_resize_status;
    byId("state").className = "";
    const recovery = reply.texts.Untorn_recovery_progress;
    byId("state").textContent = `live; ${up} s of history` + (resize ? `; pool: ${resize}` : "")
      + (recovery ? `; recovery: ${recovery}` : "");
  } catch {
    byId("state").className = "lost";
    byId("state").textContent = "the server does not answer; asking again …";
    again = 3000;
  }
  setTimeout(poll, again);
}

byId("span").addEventListener("change", paint);
window.addEventListener("resize", paint);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", paint);
poll();
