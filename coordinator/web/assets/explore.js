// The explorer's pictures: a subnet's panel beside them without a new page, arrow keys from one rectangle to the next,
// and what lies under the pointer. Every rectangle is a link, so nothing here is needed.

const parts = ["panel"];

startTreemap(document.getElementById("treemap"));
startTile(document.getElementById("explore-map"));
document.addEventListener("click", (event) => {
  const close = event.target.closest("[data-close]");
  if (!close || !isPlain(event)) return;
  event.preventDefault();
  const from = document.querySelector(".treemap .picked");
  show(close.href, { focus: () => from });
});
addEventListener("popstate", () => show(location.href, { remember: false }));

function isPlain(event) {
  return event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
}

/** The panel as the page at this address has it, and that address. */
async function show(href, { remember = true, focus = () => null } = {}) {
  const address = new URL(href, location.href);
  const text = await fetch(address, { headers: { accept: "text/html" } })
    .then((answer) => (answer.ok ? answer.text() : null))
    .catch(() => null);
  const page = text === null ? null : new DOMParser().parseFromString(text, "text/html");
  const isSame = page && page.querySelector("h1")?.textContent === document.querySelector("h1").textContent;
  if (!isSame) {
    location.assign(address);
    return;
  }
  for (const name of parts) {
    const selector = `[data-part="${name}"]`;
    document.querySelector(selector).replaceChildren(...page.querySelector(selector).childNodes);
  }
  const picked = address.searchParams.get("pick");
  for (const link of document.querySelectorAll(".treemap a"))
    link.setAttribute("class", link.dataset.range === picked ? "picked" : "drawn");
  if (remember) history.pushState(null, "", address);
  focus()?.focus();
}

function startTreemap(picture) {
  if (!picture) return;
  const links = [...picture.querySelectorAll("a")];
  const read = document.querySelector(".map-read");
  const usual = read.textContent;
  const boxes = new Map(links.map((link) => [link, boxOf(link)]));
  // One stop for the tab key; arrows go on from there.
  const enter = (link) => {
    for (const one of links) one.setAttribute("tabindex", one === link ? "0" : "-1");
  };
  enter(links.find((link) => link.classList.contains("picked")) ?? links[0]);
  read.textContent = `${usual} Arrow keys move, Enter opens, Escape closes.`;

  const tell = (event) => {
    const link = event.target.closest("a");
    if (link) read.textContent = link.querySelector("title").textContent;
  };
  picture.addEventListener("pointerover", tell);
  picture.addEventListener("focusin", (event) => {
    enter(event.target.closest("a"));
    tell(event);
  });
  picture.addEventListener("pointerleave", () => {
    read.textContent = usual;
  });
  picture.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    const href = link?.getAttribute("href") ?? "";
    if (!href.endsWith("#panel") || !isPlain(event)) return;
    event.preventDefault();
    enter(link);
    show(href, { focus: () => document.getElementById("panel") });
  });
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  picture.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    const link = event.target.closest("a");
    if (!step || !link) return;
    event.preventDefault();
    neighbour(boxes, link, step)?.focus();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") document.querySelector("[data-close]")?.click();
  });
}

function boxOf(link) {
  const edge = link.querySelector(".edge");
  const [x, y, width, height] = ["x", "y", "width", "height"].map((name) => Number(edge.getAttribute(name)));
  return { x, y, width, height };
}

/** The rectangle that touches this one on that side, at its middle. */
function neighbour(boxes, link, [right, down]) {
  const from = boxes.get(link);
  const x = right > 0 ? from.x + from.width + 0.5 : right < 0 ? from.x - 0.5 : from.x + from.width / 2;
  const y = down > 0 ? from.y + from.height + 0.5 : down < 0 ? from.y - 0.5 : from.y + from.height / 2;
  for (const [other, box] of boxes)
    if (x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height) return other;
  return null;
}

/** What the cell under the pointer is drawn by, asked of the tile itself. */
function startTile(frame) {
  if (!frame) return;
  const { family, query, pick } = frame.dataset;
  const [zoom, tileX, tileY] = ["zoom", "x", "y"].map((name) => Number(frame.dataset[name]));
  const read = document.querySelector(".map-read");
  const side = 256;
  let waiting = 0;
  let asked = new AbortController();
  frame.addEventListener("pointermove", (event) => {
    const box = frame.getBoundingClientRect();
    const cell = (at, start, length) =>
      Math.max(0, Math.min(side - 1, Math.floor(((at - start) / length) * side)));
    const x = tileX * side + cell(event.clientX, box.left, box.width);
    const y = tileY * side + cell(event.clientY, box.top, box.height);
    clearTimeout(waiting);
    waiting = setTimeout(() => ask(x, y), 120);
  });

  async function ask(x, y) {
    asked.abort();
    asked = new AbortController();
    const url = `/api/explore/point?family=${family}&order=${zoom + 8}&x=${x}&y=${y}&${query}`;
    const point = await fetch(url, { signal: asked.signal, headers: { accept: "application/json" } })
      .then((answer) => (answer.ok ? answer.json() : null))
      .catch(() => null);
    if (point) tell(point);
  }

  function tell({ address, subnet, subnets }) {
    const strong = document.createElement("strong");
    strong.textContent = address;
    read.replaceChildren(
      strong,
      subnet ? ` ${wordsOf(subnet)}` : subnets > 0 ? " is registered" : " is not registered",
    );
    if (!subnet) return;
    const link = document.createElement("a");
    const to = new URL(pick, location.href);
    to.searchParams.set("pick", subnet.range);
    link.href = `${to.pathname}${to.search}#panel`;
    link.textContent = "more";
    read.append(subnets > 1 ? ` (one of ${subnets} subnets in this cell) ` : " ", link);
  }

  function wordsOf({ range, name, holder, crawler, rttMs }) {
    const who = crawler ? `crawled by ${crawler}${rttMs === null ? "" : ` in ${rttMs} ms`}` : "not crawled";
    return `in ${range}${name ? ` ${name}` : ""}${holder ? ` of ${holder.name}` : ""}: ${who}`;
  }
}
