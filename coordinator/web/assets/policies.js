// Policies: sliders beside the numbers, the preview of each change as it is made, and a search while one types. Everything
// works without this script: the form's button shows the preview, and the search is a form of its own.

const form = document.querySelector(".policy-form");
const settleMs = 500;

// Sliders. A range is divided evenly, or by powers if it is wide. The number decides.

function valueAt(slider) {
  const { least, most, scale, whole, above } = slider.dataset;
  const share = slider.value / slider.max;
  const span = most - least;
  const raw = Number(least) + (scale === "even" ? span * share : (span + 1) ** share - 1);
  if (slider.value === slider.max) return Number(most);
  const rounded = whole === "yes" ? roundWhole(raw) : Number(raw.toPrecision(2));
  const smallest = above === "yes" ? Number((span / 1e6).toPrecision(1)) : Number(least);
  return Math.min(Number(most), Math.max(rounded, above === "yes" ? Math.max(smallest, 0.01) : smallest));
}

/** Rounds a large number to two digits and keeps all digits of a small one. */
const roundWhole = (raw) => (raw < 100 ? Math.round(raw) : Number(raw.toPrecision(2)));

function positionOf(slider, value) {
  const { least, most, scale } = slider.dataset;
  const span = most - least;
  const above = Math.min(span, Math.max(0, value - least));
  const share = scale === "even" ? above / span : Math.log(above + 1) / Math.log(span + 1);
  return Math.round(share * slider.max);
}

function describe(slider, field) {
  const unit = field.nextElementSibling?.textContent ?? "";
  slider.setAttribute("aria-valuetext", `${field.value} ${unit}`.trim());
}

function connect(slider) {
  const field = document.getElementById(slider.dataset.for);
  const follow = () => {
    slider.value = positionOf(slider, Number(field.value));
    describe(slider, field);
  };
  slider.addEventListener("input", () => {
    field.value = String(valueAt(slider));
    describe(slider, field);
    field.dispatchEvent(new Event("change", { bubbles: true }));
  });
  field.addEventListener("input", follow);
  follow();
  slider.hidden = false;
}

// The preview of a change: requested from the server, policy by policy, once the slider rests.

const waiting = new Map();

function changed(field) {
  if (field.tagName === "SELECT") return ![...field.options].find((one) => one.defaultSelected)?.selected;
  return field.value.trim() !== field.defaultValue;
}

function fields() {
  return [...form.querySelectorAll(".policy-input :is(input[name], select[name])")];
}

function say() {
  const count = fields().filter(changed).length;
  document.getElementById("policy-count").textContent =
    count === 0
      ? "Shows what would change. Nothing is saved yet."
      : `${count === 1 ? "1 change" : `${count} changes`}. Nothing is saved yet.`;
}

async function preview(field) {
  const place = field.closest(".policy").querySelector(".policy-effect");
  waiting.get(field.name)?.asked?.abort();
  if (!changed(field)) {
    place.hidden = true;
    place.replaceChildren();
    return;
  }
  const asked = new AbortController();
  waiting.set(field.name, { asked });
  const body = new URLSearchParams({
    "form-token": form.elements["form-token"].value,
    "based-on": form.elements["based-on"].value,
    [field.name]: field.value,
  });
  place.hidden = false;
  place.dataset.state = "asking";
  try {
    const answer = await fetch(form.action, { method: "POST", body, signal: asked.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fault = page.querySelector('[role="alert"], .error p:not(.status)');
    const effects = [...page.querySelectorAll(".effect")];
    if (answer.ok) place.replaceChildren(...effects.map((effect) => document.adoptNode(effect)));
    else
      place.replaceChildren(words("fault", fault?.textContent ?? "No preview now: try again in a moment."));
  } catch (error) {
    if (error.name !== "AbortError")
      place.replaceChildren(words("fault", "No preview: the coordinator does not answer."));
  } finally {
    if (!asked.signal.aborted) delete place.dataset.state;
  }
}

function words(className, text) {
  return Object.assign(document.createElement("p"), { className, textContent: text });
}

function noteChange({ target: field }) {
  if (!field.name || !field.closest(".policy-input")) return;
  say();
  clearTimeout(waiting.get(field.name)?.timer);
  const timer = setTimeout(() => preview(field), settleMs);
  waiting.set(field.name, { ...waiting.get(field.name), timer });
}

if (form) {
  for (const slider of form.querySelectorAll(".slider")) connect(slider);
  form.addEventListener("input", noteChange);
  form.addEventListener("change", noteChange);
  say();
}

// The search hides what does not match while one types. Enter searches all policies.

const search = document.getElementById("policy-q");
search?.addEventListener("input", () => {
  const asked = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  for (const policy of document.querySelectorAll(".policy")) {
    const text = policy.querySelector(".policy-words").textContent.toLowerCase();
    policy.hidden = !asked.every((word) => text.includes(word));
  }
  for (const group of document.querySelectorAll("details.policies")) {
    const found = group.querySelector(".policy:not([hidden])") !== null;
    group.hidden = !found;
    if (asked.length > 0) group.open = found;
  }
});

// A link to one policy opens the group that contains it.
const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
const folded = target?.closest?.("details");
if (folded) {
  folded.open = true;
  target.scrollIntoView();
}
