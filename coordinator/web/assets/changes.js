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

function rowOf({ seenAt, kind, url, words }) {
  const row = document.createElement("tr");
  const when = element("time", { dateTime: seenAt, textContent: timeFormat.format(new Date(seenAt)) });
  const what = element("span", { className: `kind kind-${kind}`, textContent: kindWords[kind] ?? kind });
  const page = element("a", {
    className: "mono",
    href: `/who?${new URLSearchParams({ q: url })}`,
    textContent: url,
  });
  row.append(
    cell(0, "nowrap", when),
    cell(1, "nowrap", what),
    cell(2, "break", page),
    cell(3, "wide", words),
  );
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
