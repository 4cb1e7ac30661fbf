// What the pages do beyond HTML: times in the reader's zone, and live regions on the overview. Everything works without this
// script.

const timeFormat = new Intl.DateTimeFormat(undefined, {
  dateStyle: "medium",
  timeStyle: "medium",
});
const dayFormat = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

function showLocalTimes(within) {
  for (const element of within.querySelectorAll("time[datetime]")) {
    const instant = new Date(element.dateTime);
    if (Number.isNaN(instant.getTime())) continue;
    const text = timeFormat.format(instant);
    if (element.classList.contains("ago")) {
      element.title = text;
    } else if ("day" in element.dataset) {
      element.title = text;
      element.textContent = dayFormat.format(instant);
    } else {
      element.title = element.textContent;
      element.textContent = text;
    }
  }
}

function showLive() {
  const regions = new Map(
    [...document.querySelectorAll("[data-live]")].map((region) => [region.dataset.live, region]),
  );
  const badge = document.getElementById("live");
  if (regions.size === 0 || !badge) return;
  const events = new EventSource("/events");
  const say = (state, text) => {
    badge.hidden = false;
    badge.dataset.state = state;
    badge.textContent = text;
  };
  events.addEventListener("overview", (event) => {
    say("on", "live");
    for (const [name, markup] of Object.entries(JSON.parse(event.data).regions)) {
      const region = regions.get(name);
      // A region that is being used is not replaced, so that neither focus nor scroll position is lost.
      if (!region || region.contains(document.activeElement)) continue;
      const scrolled = region.querySelector(".scroll")?.scrollLeft ?? 0;
      region.innerHTML = markup;
      const scroller = region.querySelector(".scroll");
      if (scroller) scroller.scrollLeft = scrolled;
      showLocalTimes(region);
    }
  });
  events.addEventListener("error", () => say("off", "not live: the coordinator does not answer"));
}

showLocalTimes(document);
showLive();
