// What charts do beyond SVG: show values under the pointer or by arrow keys, and select another range by dragging (or with
// Shift and Enter). The figures are read from the table that each chart has. The server draws the new range.
const picture = "http://www.w3.org/2000/svg";
const leastDragged = 8;

/** Charts are looked up when they are used, because regions of an open page may be replaced. */
const known = new WeakMap();

function chartOf(target) {
  const plot = target instanceof Element ? target.closest(".chart-plot") : null;
  if (!plot) return null;
  if (!known.has(plot)) known.set(plot, prepared(plot));
  return known.get(plot);
}

function prepared(plot) {
  const figure = plot.closest("[data-chart]");
  const view = plot.querySelector(".chart-view");
  const drawing = view.querySelector("svg");
  const heads = [...figure.querySelectorAll(".chart-figures thead th")].slice(1);
  const names = heads.length === 1 ? [""] : heads.map((head) => head.textContent);
  const rows = [...figure.querySelectorAll(".chart-figures tbody tr")].map((row) => ({
    at: Number(row.cells[0].dataset.at),
    time: row.cells[0].textContent,
    values: [...row.cells].slice(1).map((cell) => cell.textContent),
  }));
  const marks = [...figure.querySelectorAll(".chart-marks li[data-at]")].map((item) => ({
    at: Number(item.dataset.at),
    text: item.textContent,
  }));
  const tip = Object.assign(document.createElement("div"), { className: "chart-tip", hidden: true });
  const spoken = Object.assign(document.createElement("p"), { className: "hidden" });
  spoken.setAttribute("role", "status");
  plot.append(tip, spoken);
  const since = Number(plot.dataset.since);
  const span = Number(plot.dataset.until) - since;
  return {
    ...{ plot, view, drawing, names, rows, marks, tip, spoken, since, span },
    spots: names.map((_, index) => spotsOf(drawing, index + 1)),
    shown: null,
    /** Where the selection of a range began, as a share of the width. */
    from: null,
  };
}

/** Maps the x of each point of a line to its y. */
function spotsOf(drawing, number) {
  const spots = new Map();
  for (const path of drawing.querySelectorAll(`.chart-line-${number}`)) {
    for (const [, x, y] of path.getAttribute("d").matchAll(/[ML]([\d.]+) ([\d.]+)/g)) spots.set(x, y);
  }
  return spots;
}

const shareOf = (chart, at) => (at - chart.since) / chart.span;

function shareUnder(chart, event) {
  const box = chart.drawing.getBoundingClientRect();
  return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
}

function nearest(chart, share) {
  let best = 0;
  for (const [index, { at }] of chart.rows.entries()) {
    const distance = Math.abs(shareOf(chart, at) - share);
    if (distance < Math.abs(shareOf(chart, chart.rows[best].at) - share)) best = index;
  }
  return best;
}

function drawn(chart, name, attributes) {
  const path = document.createElementNS(picture, "path");
  path.setAttribute("class", `${name} chart-shown`);
  for (const [key, value] of Object.entries(attributes)) path.setAttribute(key, value);
  chart.drawing.append(path);
}

function clear(chart) {
  for (const path of chart.drawing.querySelectorAll(".chart-shown")) path.remove();
  for (const mark of chart.drawing.querySelectorAll(".chart-mark.current")) mark.classList.remove("current");
}

function hide(chart) {
  clear(chart);
  chart.tip.hidden = true;
  chart.shown = null;
  chart.from = null;
}

function line(text, number) {
  const item = document.createElement("p");
  if (number !== null) {
    const sample = document.createElementNS(picture, "svg");
    sample.setAttribute("width", "28");
    sample.setAttribute("height", "10");
    const path = document.createElementNS(picture, "path");
    path.setAttribute("class", `chart-line chart-line-${number}`);
    path.setAttribute("d", "M1 5H27");
    sample.append(path);
    item.append(sample);
  }
  item.append(text);
  return item;
}

/** Shows the values of one row, the marks near it, and the range selected so far. */
function show(chart, index, speaks) {
  const row = chart.rows[index];
  chart.shown = index;
  const share = shareOf(chart, row.at);
  const x = 1000 * Math.max(0, share);
  clear(chart);
  if (chart.from !== null) {
    const [left, right] = [Math.min(chart.from, share), Math.max(chart.from, share)];
    drawn(chart, "chart-chosen", { d: `M${1000 * left} 0H${1000 * right}V100H${1000 * left}Z` });
  }
  drawn(chart, "chart-cursor", { d: `M${x} 0V100` });
  const key = String(Math.round(10 * x) / 10);
  for (const [number, spots] of chart.spots.entries()) {
    if (spots.has(key))
      drawn(chart, `chart-dot chart-line-${number + 1}`, { d: `M${key} ${spots.get(key)}h0` });
  }
  const values = row.values.flatMap((value, number) =>
    value === ""
      ? []
      : [{ number, text: chart.names[number] === "" ? value : `${chart.names[number]}: ${value}` }],
  );
  const marks = chart.marks.filter(({ at }) => Math.abs(shareOf(chart, at) - share) < 0.012);
  for (const [number, mark] of [...chart.drawing.querySelectorAll(".chart-mark")].entries()) {
    mark.classList.toggle("current", marks.includes(chart.marks[number]));
  }
  const isOne = chart.names.length === 1;
  chart.tip.replaceChildren(
    line(`${row.time} UTC`, null),
    ...values.map(({ number, text }) => line(text, isOne ? null : number + 1)),
    ...marks.map(({ text }) => line(text, null)),
  );
  chart.tip.hidden = false;
  place(chart, share);
  if (speaks) {
    chart.spoken.textContent = [
      `${row.time} UTC`,
      ...values.map(({ text }) => text),
      ...marks.map(({ text }) => text),
    ].join("; ");
  }
}

/** Places the tip beside the cursor, on the side with more room. */
function place({ plot, tip, drawing }, share) {
  const around = plot.getBoundingClientRect();
  const box = drawing.getBoundingClientRect();
  const at = box.left - around.left + share * box.width;
  const left = share > 0.5 ? at - tip.offsetWidth - 10 : at + 10;
  tip.style.left = `${Math.max(0, Math.min(around.width - tip.offsetWidth, left))}px`;
}

/** Formats an instant in UTC, as in the URL. */
const instantText = (seconds) => new Date(1000 * seconds).toISOString().replace(/\.\d+Z$/, "Z");

function zoom(chart, one, other) {
  const [left, right] = [Math.min(one, other), Math.max(one, other)];
  const address = new URL(location.href);
  address.searchParams.delete("range");
  address.searchParams.set("since", instantText(chart.since + left * chart.span));
  address.searchParams.set("until", instantText(chart.since + right * chart.span));
  address.hash = "";
  location.assign(address);
}

let dragged = null;

document.addEventListener("pointermove", (event) => {
  const chart = dragged?.chart ?? chartOf(event.target);
  for (const plot of document.querySelectorAll(".chart-plot")) {
    const other = known.get(plot);
    if (other && other !== chart && other.shown !== null && plot !== document.activeElement) hide(other);
  }
  if (chart && chart.rows.length > 0) show(chart, nearest(chart, shareUnder(chart, event)), false);
});

document.addEventListener("pointerdown", (event) => {
  const chart = event.button === 0 ? chartOf(event.target) : null;
  if (!chart || chart.rows.length === 0) return;
  event.preventDefault();
  chart.plot.focus({ preventScroll: true });
  chart.from = shareUnder(chart, event);
  dragged = { chart, x: event.clientX };
});

document.addEventListener("pointerup", (event) => {
  if (dragged === null) return;
  const { chart, x } = dragged;
  const from = chart.from;
  dragged = null;
  if (from !== null && Math.abs(event.clientX - x) >= leastDragged)
    return zoom(chart, from, shareUnder(chart, event));
  chart.from = null;
});

document.addEventListener("pointercancel", () => {
  if (dragged !== null) hide(dragged.chart);
  dragged = null;
});

document.addEventListener("keydown", (event) => {
  const chart = chartOf(event.target);
  if (!chart || chart.rows.length === 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = chart.rows.length - 1;
  const at = chart.shown ?? last + 1;
  const next = {
    ArrowLeft: at - 1,
    ArrowRight: at + 1,
    PageUp: at - 10,
    PageDown: at + 10,
    Home: 0,
    End: last,
  }[event.key];
  if (next !== undefined) {
    event.preventDefault();
    if (event.shiftKey && chart.from === null && chart.shown !== null) {
      chart.from = shareOf(chart, chart.rows[chart.shown].at);
    } else if (!event.shiftKey) chart.from = null;
    show(chart, Math.min(last, Math.max(0, next)), true);
  } else if (event.key === "Enter" && chart.from !== null && chart.shown !== null) {
    event.preventDefault();
    const until = shareOf(chart, chart.rows[chart.shown].at);
    if (until !== chart.from) zoom(chart, chart.from, until);
  } else if (event.key === "Escape") {
    event.preventDefault();
    dragged = null;
    if (chart.from !== null || chart.shown !== null) hide(chart);
    else document.querySelector("[data-zoom-out]")?.click();
  }
});

document.addEventListener("focusout", (event) => {
  const chart = chartOf(event.target);
  if (chart) hide(chart);
});

/** Highlights a mark in the picture while its entry in the list has the focus or the pointer. */
for (const kind of ["focusin", "pointerover"]) {
  document.addEventListener(kind, ({ target }) => {
    const item = target instanceof Element ? target.closest(".chart-marks li[data-at]") : null;
    const plot = item?.closest("[data-chart]")?.querySelector(".chart-plot");
    if (!plot) return;
    const number = [...item.parentElement.children].indexOf(item);
    for (const [index, mark] of [...plot.querySelectorAll(".chart-mark")].entries()) {
      mark.classList.toggle("current", index === number);
    }
  });
}

function makeReachable() {
  for (const plot of document.querySelectorAll(".chart-plot:not(.reachable)")) {
    plot.classList.add("reachable");
    plot.tabIndex = 0;
    plot.setAttribute("role", "group");
    const title = plot.closest("[data-chart]").querySelector("figcaption strong")?.textContent ?? "";
    plot.setAttribute(
      "aria-label",
      `${title}: arrow keys read the values; Shift with an arrow key chooses a span, Enter shows it, Escape goes back`,
    );
  }
}

makeReachable();
new MutationObserver(makeReachable).observe(document.getElementById("content") ?? document.body, {
  childList: true,
  subtree: true,
});
