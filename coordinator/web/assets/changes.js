// The change feed, alive: new changes are put on top as they come. The page is whole without it.
const body = document.querySelector("[data-stream]");
const badge = document.getElementById("live");
const mostRows = 500;
const timeFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const kindWords = Object.fromEntries(
  [...document.querySelectorAll("#changes-kind option")].map((one) => [one.value, one.textContent]),
);

const labels = [...document.querySelectorAll("thead th")].map((head) => head.textContent);

function cell(column, className, ...content) {
  const made = document.createElement("td");
  made.className = className;
  made.dataset.label = labels[column];
  made.append(...content);
  return made;
}

function element(name, properties) {
  return Object.assign(document.createElement(name), properties);
}

/** As changes/difference-page draws it, without the parts' names. */
function differenceOf({ places, more }) {
  const count = places.length + more;
  const made = element("details", { className: "difference" });
  const list = element("ul", { className: "difference-places" });
  const marked = (name, text) => {
    const mark = element(name, {});
    mark.append(element("bdi", { textContent: text }));
    return text === "" ? [] : [mark, " "];
  };
  for (const { before, removed, added, after } of places) {
    const item = element("li", {});
    item.append(element("bdi", { textContent: before }), " ", ...marked("del", removed));
    item.append(...marked("ins", added), element("bdi", { textContent: after }));
    list.append(item);
  }
  const summary = `${count} ${count === 1 ? "place" : "places"} of the text`;
  made.append(element("summary", { textContent: summary }), list);
  return made;
}

function rowOf({ seenAt, kind, url, words, difference }) {
  const row = document.createElement("tr");
  const when = element("time", { dateTime: seenAt, textContent: timeFormat.format(new Date(seenAt)) });
  const what = element("span", { className: `kind kind-${kind}`, textContent: kindWords[kind] ?? kind });
  const page = element("a", {
    className: "mono",
    href: `/who?${new URLSearchParams({ q: url })}`,
    textContent: url,
  });
  const told = cell(3, "wide", element("bdi", { textContent: words }));
  if (difference) told.append(differenceOf(difference));
  row.append(cell(0, "nowrap", when), cell(1, "nowrap", what), cell(2, "break", page), told);
  return row;
}

function say(state, text) {
  badge.hidden = false;
  badge.dataset.state = state;
  badge.textContent = text;
}

if (body && badge) {
  const events = new EventSource(body.dataset.stream);
  events.addEventListener("open", () => say("on", "live"));
  events.addEventListener("change", ({ data }) => {
    document.querySelector(".empty")?.remove();
    body.prepend(rowOf(JSON.parse(data)));
    while (body.rows.length > mostRows) body.deleteRow(-1);
  });
  events.addEventListener("refused", ({ data }) => {
    events.close();
    say("off", `not live: ${JSON.parse(data).error.message}`);
  });
  events.addEventListener("error", () => say("off", "not live: the coordinator does not answer"));
}
