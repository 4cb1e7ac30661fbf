// The explorer's map, moved and zoomed: tiles on a canvas, what lies under the pointer, the keyboard.
// Without it the picture has a link on each of its blocks.

const frame = document.getElementById("explore-map");
if (frame) startMap(frame);

function startMap(element) {
  const { family, query } = element.dataset;
  const deepest = Number(element.dataset.deepest);
  const pointOrder = family === "4" ? 16 : 26;
  const canvas = document.createElement("canvas");
  const said = document.createElement("p");
  const tiles = new Map();
  const mostTiles = 300;
  // The view: its top left corner and its width, where the whole map is 1 by 1.
  const first = {
    zoom: Number(element.dataset.zoom),
    x: Number(element.dataset.x),
    y: Number(element.dataset.y),
  };
  let width = 1 / 2 ** first.zoom;
  let [left, top] = [first.x * width, first.y * width];
  const narrowest = 1 / 2 ** (deepest + 2);
  let side = 0;
  let drawing = false;

  canvas.tabIndex = 0;
  canvas.setAttribute("role", "application");
  canvas.setAttribute(
    "aria-label",
    `${element.querySelector("img").alt}. Arrow keys move, plus and minus zoom, Enter opens what is in the middle.`,
  );
  said.className = "map-read";
  said.setAttribute("aria-live", "polite");
  said.textContent = "Drag to move, scroll to zoom; arrow keys, + and − do the same.";
  element.replaceChildren(canvas, buttons());
  element.after(said);
  // The frame and what is said below it stay in one column.
  const column = document.createElement("div");
  element.before(column);
  column.append(element, said);

  new ResizeObserver(() => {
    side = element.clientWidth;
    canvas.width = canvas.height = Math.round(side * devicePixelRatio);
    draw();
  }).observe(element);

  function draw() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(() => {
      drawing = false;
      paint();
    });
  }

  function paint() {
    const to = canvas.getContext("2d");
    to.imageSmoothingEnabled = false;
    to.clearRect(0, 0, canvas.width, canvas.height);
    const wanted = Math.floor(Math.log2(canvas.width / 256 / width));
    const zoom = Math.max(0, Math.min(deepest, wanted));
    const shown = visible(zoom);
    const ready = shown.map(load).every((image) => image.complete);
    // Until all are there, what is known of larger tiles stands in.
    for (let under = ready ? zoom : Math.max(0, zoom - 3); under < zoom; under += 1) {
      for (const tile of visible(under)) if (tiles.get(keyOf(tile))?.naturalWidth) place(to, tile);
    }
    for (const tile of shown) {
      const image = tiles.get(keyOf(tile));
      if (!image.naturalWidth) continue;
      clear(to, tile);
      place(to, tile);
    }
    outline(to);
  }

  function visible(zoom) {
    const count = 2 ** zoom;
    const found = [];
    const limit = (value) => Math.max(0, Math.min(count - 1, Math.floor(value * count)));
    const [lastX, lastY] = [limit(left + width * 0.9999), limit(top + width * 0.9999)];
    for (let y = limit(top); y <= lastY; y += 1)
      for (let x = limit(left); x <= lastX; x += 1) found.push({ zoom, x, y });
    return found;
  }

  function keyOf({ zoom, x, y }) {
    return `${zoom}/${x}/${y}`;
  }

  function load(tile) {
    const key = keyOf(tile);
    const known = tiles.get(key);
    if (known) {
      tiles.delete(key);
      tiles.set(key, known);
      return known;
    }
    const image = new Image();
    image.onload = draw;
    image.src = `/explore/tile.png?family=${family}&zoom=${tile.zoom}&x=${tile.x}&y=${tile.y}&${query}`;
    tiles.set(key, image);
    if (tiles.size > mostTiles) tiles.delete(tiles.keys().next().value);
    return image;
  }

  function rectangle({ zoom, x, y }) {
    const scale = canvas.width / width;
    const at = (value, corner) => Math.round((value / 2 ** zoom - corner) * scale);
    const [x0, y0] = [at(x, left), at(y, top)];
    return [x0, y0, at(x + 1, left) - x0, at(y + 1, top) - y0];
  }

  function clear(to, tile) {
    to.clearRect(...rectangle(tile));
  }

  function place(to, tile) {
    to.drawImage(tiles.get(keyOf(tile)), ...rectangle(tile));
  }

  /** The blocks of the view's zoom, as faint lines. */
  function outline(to) {
    const count = 2 ** Math.min(deepest + 8, Math.max(2, Math.round(-Math.log2(width)) + 2));
    to.strokeStyle = getComputedStyle(element).color;
    to.globalAlpha = 0.16;
    to.beginPath();
    for (let line = Math.ceil(left * count); line / count < left + width; line += 1) {
      const at = Math.round(((line / count - left) / width) * canvas.width) + 0.5;
      to.moveTo(at, 0);
      to.lineTo(at, canvas.height);
    }
    for (let line = Math.ceil(top * count); line / count < top + width; line += 1) {
      const at = Math.round(((line / count - top) / width) * canvas.height) + 0.5;
      to.moveTo(0, at);
      to.lineTo(canvas.width, at);
    }
    to.stroke();
    to.globalAlpha = 1;
    nameBlocks(to, count);
  }

  /** Each block by its address, in its corner. */
  function nameBlocks(to, count) {
    const order = Math.log2(count);
    if (order > pointOrder) return;
    const look = getComputedStyle(element);
    const size = 11 * devicePixelRatio;
    to.font = `${size}px ${look.getPropertyValue("--mono")}`;
    to.textBaseline = "top";
    const scale = canvas.width / width;
    const room = scale / count;
    for (let y = Math.floor(top * count); y / count < top + width; y += 1) {
      for (let x = Math.floor(left * count); x / count < left + width; x += 1) {
        const text = blockName(indexOfCell(x, y, order), order);
        const wide = to.measureText(text).width;
        if (wide + size > room) continue;
        const [at, down] = [(x / count - left) * scale + 0.4 * size, (y / count - top) * scale + 0.4 * size];
        to.fillStyle = look.backgroundColor;
        to.globalAlpha = 0.85;
        to.fillRect(at - 0.2 * size, down - 0.15 * size, wide + 0.4 * size, 1.3 * size);
        to.globalAlpha = 1;
        to.fillStyle = look.color;
        to.fillText(text, at, down);
      }
    }
  }

  function blockName(index, order) {
    const prefix = 2 * order + (family === "4" ? 0 : 3);
    if (family === "4") {
      const address = index * 2 ** (32 - 2 * order);
      return `${[24, 16, 8, 0].map((shift) => Math.floor(address / 2 ** shift) % 256).join(".")}/${prefix}`;
    }
    const bits = 2n ** 61n + (BigInt(index) << BigInt(61 - 2 * order));
    const groups = [48n, 32n, 16n, 0n].map((shift) => ((bits >> shift) & 0xffffn).toString(16));
    while (groups.at(-1) === "0") groups.pop();
    return `${groups.join(":")}::/${prefix}`;
  }

  function moveTo(newLeft, newTop, newWidth) {
    width = Math.max(narrowest, Math.min(1, newWidth));
    left = Math.max(0, Math.min(1 - width, newLeft));
    top = Math.max(0, Math.min(1 - width, newTop));
    draw();
    settle();
  }

  /** Zooms by a factor about a point of the frame, 0 to 1 across. */
  function zoomBy(factor, acrossX = 0.5, acrossY = 0.5) {
    const wide = Math.max(narrowest, Math.min(1, width / factor));
    moveTo(left + (width - wide) * acrossX, top + (width - wide) * acrossY, wide);
  }

  function buttons() {
    const group = document.createElement("div");
    group.className = "map-buttons";
    const add = (text, label, act) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "quiet";
      button.textContent = text;
      button.setAttribute("aria-label", label);
      button.addEventListener("click", act);
      group.append(button);
    };
    add("+", "Zoom in", () => zoomBy(2));
    add("−", "Zoom out", () => zoomBy(0.5));
    return group;
  }

  canvas.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      zoomBy(1.0015 ** -event.deltaY, event.offsetX / side, event.offsetY / side);
    },
    { passive: false },
  );

  const fingers = new Map();
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    fingers.set(event.pointerId, event);
  });
  for (const end of ["pointerup", "pointercancel"])
    canvas.addEventListener(end, (event) => fingers.delete(event.pointerId));
  canvas.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) {
      ask(event.offsetX / side, event.offsetY / side);
      return;
    }
    const other = [...fingers.values()].find((finger) => finger.pointerId !== event.pointerId);
    if (other) {
      const gap = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY);
      zoomBy(gap(event) / Math.max(1, gap(before)), event.offsetX / side, event.offsetY / side);
    } else {
      const scale = width / side;
      moveTo(
        left - (event.clientX - before.clientX) * scale,
        top - (event.clientY - before.clientY) * scale,
        width,
      );
    }
    fingers.set(event.pointerId, event);
  });
  canvas.addEventListener("dblclick", (event) => zoomBy(4, event.offsetX / side, event.offsetY / side));

  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (step) moveTo(left + (step[0] * width) / 8, top + (step[1] * width) / 8, width);
    else if (event.key === "+" || event.key === "=") zoomBy(2);
    else if (event.key === "-") zoomBy(0.5);
    else if (event.key === "Enter") open();
    else return;
    event.preventDefault();
    if (event.key !== "Enter") ask(0.5, 0.5);
  });

  let asking = 0;
  const forReading = latestAlone();
  /** What lies at a point of the frame. */
  function ask(acrossX, acrossY) {
    clearTimeout(asking);
    asking = setTimeout(async () => {
      const point = await pointAt(acrossX, acrossY, { signal: forReading() });
      if (point) tell(point);
    }, 120);
  }

  async function pointAt(acrossX, acrossY, { order = pointOrder, signal = null } = {}) {
    const [x, y] = [left + width * acrossX, top + width * acrossY].map((at) =>
      Math.min(2 ** order - 1, Math.floor(at * 2 ** order)),
    );
    try {
      const url = `/api/explore/point?family=${family}&order=${order}&x=${x}&y=${y}`;
      const answer = await fetch(url, { signal, headers: { accept: "application/json" } });
      return answer.ok ? await answer.json() : null;
    } catch {
      return null;
    }
  }

  function tell({ address, subnet }) {
    const strong = document.createElement("strong");
    strong.textContent = address;
    said.replaceChildren(strong, ` ${subnet ? wordsOf(subnet) : "is not registered"}`);
    if (!subnet) return;
    const link = document.createElement("a");
    link.href = `/who?q=${encodeURIComponent(subnet.range)}`;
    link.textContent = "why?";
    said.append(" ", link);
  }

  function wordsOf({ range, name, holder, crawler, rttMs, state, decidedFor }) {
    const who = crawler
      ? `crawled by ${crawler}${rttMs === null ? "" : ` in ${rttMs} ms`}`
      : "crawled by nobody";
    const through = state === "inherited" ? ` (with ${decidedFor})` : "";
    return `in ${range}${name ? ` ${name}` : ""}${holder ? ` of ${holder.name}` : ""}: ${who}${through}`;
  }

  let settling = 0;
  const forSettling = latestAlone();
  /** When the view rests, the figures and the page's address follow it. */
  function settle() {
    clearTimeout(settling);
    settling = setTimeout(async () => {
      const signal = forSettling();
      const address = await addressInMiddle(signal);
      if (address) await showFigures(address, signal);
    }, 350);
  }

  async function addressInMiddle(signal) {
    const zoom = Math.max(0, Math.min(deepest, Math.round(-Math.log2(width))));
    const point = await pointAt(0.5, 0.5, { order: zoom + 8, signal });
    if (!point?.tile) return null;
    const address = new URL(location.href);
    address.searchParams.set("view", "map");
    address.searchParams.set("at", point.tile);
    return address;
  }

  async function showFigures(address, signal) {
    const html = await fetch(address, { signal, headers: { accept: "text/html" } })
      .then((answer) => (answer.ok ? answer.text() : null))
      .catch(() => null);
    if (html === null) return;
    const page = new DOMParser().parseFromString(html, "text/html");
    for (const part of document.querySelectorAll("[data-part], h1, .way-out, .tabs")) {
      const selector = part.dataset.part
        ? `[data-part="${part.dataset.part}"]`
        : part.className
          ? `.${part.className}`
          : "h1";
      const news = page.querySelector(selector);
      if (news && !part.contains(document.activeElement)) part.replaceChildren(...news.childNodes);
    }
    const field = document.querySelector(".explore-form [name=at]");
    if (field && field !== document.activeElement) field.value = address.searchParams.get("at");
    document.title = page.title;
    history.replaceState(null, "", address);
  }

  async function open() {
    const point = await pointAt(0.5, 0.5);
    if (point?.subnet) location.href = `/explore?view=tree&at=${encodeURIComponent(point.subnet.range)}`;
  }
}

// Signals for questions of one kind, one at a time: each aborts the one before it, and no other kind's.
function latestAlone() {
  let last = new AbortController();
  return () => {
    last.abort();
    last = new AbortController();
    return last.signal;
  };
}

// The number of a cell along the Hilbert curve, as coordinator/core/explore/hilbert.ts has it.
function indexOfCell(cellX, cellY, order) {
  let [x, y, index] = [cellX, cellY, 0];
  for (let side = 2 ** (order - 1); side >= 1; side /= 2) {
    const right = x >= side ? 1 : 0;
    const down = y >= side ? 1 : 0;
    index += side * side * (3 * right + (right === 1 ? -down : down));
    [x, y] = [x - side * right, y - side * down];
    if (down === 0) [x, y] = right === 1 ? [side - 1 - y, side - 1 - x] : [y, x];
  }
  return index;
}
