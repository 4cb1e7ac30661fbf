// The search box at the top of every page. `/` and Ctrl-K (Cmd-K on a Mac) focus it, and results are listed below it while
// one types (the combobox pattern of the ARIA Authoring Practices: the focus stays in the field). Without this script, Enter
// leads to /find.

const typingMs = 120;

const kindNames = {
  page: "Pages",
  crawler: "Crawlers",
  host: "Hosts",
  who: "Look up",
  setting: "Settings",
  action: "Actions",
};

/** How many results of each kind are listed. The page that Enter opens has more. */
const shownOfKind = 5;

class FindBox {
  #input;
  #list = document.createElement("div");
  #status = document.createElement("p");
  #options = [];
  #active = -1;
  #timer = 0;
  /** The request whose answer is awaited. Answers to earlier ones are ignored. */
  #asking = null;
  #shown = null;

  constructor(form, input) {
    this.#input = input;
    this.#list.id = "find-list";
    this.#list.className = "find-list";
    this.#list.setAttribute("role", "listbox");
    this.#list.setAttribute("aria-label", "Found");
    this.#list.hidden = true;
    this.#status.className = "hidden";
    this.#status.setAttribute("role", "status");
    form.append(this.#list, this.#status);
    for (const [name, value] of Object.entries({
      role: "combobox",
      autocomplete: "off",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": this.#list.id,
    }))
      input.setAttribute(name, value);
    input.addEventListener("input", () => this.#later());
    input.addEventListener("focus", () => this.#later());
    input.addEventListener("keydown", (event) => this.#key(event));
    form.addEventListener("focusout", ({ relatedTarget }) => {
      if (!form.contains(relatedTarget)) this.#close();
    });
    // Otherwise a press would take the focus from the field and close the list before the click.
    this.#list.addEventListener("mousedown", (event) => event.preventDefault());
  }

  focus() {
    this.#input.focus();
    this.#input.select();
  }

  #later() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#ask(), typingMs);
  }

  async #ask() {
    const question = this.#input.value.trim();
    if (question === this.#shown && !this.#list.hidden) return;
    this.#asking?.abort();
    const asking = new AbortController();
    this.#asking = asking;
    try {
      const answer = await fetch(`/api/find?q=${encodeURIComponent(question)}`, { signal: asking.signal });
      const found = answer.ok ? await answer.json() : null;
      if (this.#asking !== asking || document.activeElement !== this.#input) return;
      this.#show(question, found);
    } catch {
      // If nobody answers the current request, the list closes. Enter still leads to the page.
      if (this.#asking === asking) this.#close();
    }
  }

  #show(question, found) {
    if (found === null) return this.#close();
    this.#shown = question;
    this.#options = [];
    this.#list.replaceChildren(
      ...groupsOf(found.results).map(([kind, results]) => this.#group(kind, results)),
    );
    this.#activate(-1);
    const count = this.#options.length;
    this.#list.hidden = count === 0;
    this.#input.setAttribute("aria-expanded", String(count > 0));
    this.#status.textContent =
      count === 0 ? "Nothing found" : `${count} ${count === 1 ? "result" : "results"}, arrow keys to choose`;
  }

  #group(kind, results) {
    const group = document.createElement("div");
    const heading = document.createElement("p");
    group.setAttribute("role", "group");
    heading.id = `find-kind-${kind}`;
    heading.setAttribute("role", "presentation");
    heading.textContent = kindNames[kind] ?? kind;
    group.setAttribute("aria-labelledby", heading.id);
    group.append(heading, ...results.map((one) => this.#option(one)));
    return group;
  }

  #option({ title, words, href }) {
    const link = document.createElement("a");
    const [name, more] = [document.createElement("bdi"), document.createElement("span")];
    link.id = `find-option-${this.#options.length}`;
    link.href = href;
    link.tabIndex = -1;
    link.setAttribute("role", "option");
    link.setAttribute("aria-selected", "false");
    name.textContent = title;
    more.className = "small";
    more.dir = "auto";
    more.textContent = words;
    link.append(name, more);
    const at = this.#options.push(link) - 1;
    link.addEventListener("mousemove", () => this.#activate(at));
    return link;
  }

  #activate(at) {
    this.#options[this.#active]?.setAttribute("aria-selected", "false");
    this.#active = at;
    const option = this.#options[at];
    if (option === undefined) return this.#input.removeAttribute("aria-activedescendant");
    option.setAttribute("aria-selected", "true");
    this.#input.setAttribute("aria-activedescendant", option.id);
    option.scrollIntoView({ block: "nearest" });
  }

  /** The field is one of the steps, because it holds what was typed. */
  #step(by) {
    const steps = this.#options.length + 1;
    this.#activate(((this.#active + 1 + by + steps) % steps) - 1);
  }

  #key(event) {
    if (event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape") {
      // The first Escape closes the list, and the next empties the field, as search fields do by themselves.
      if (this.#list.hidden) return;
      event.preventDefault();
      this.#close();
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (this.#list.hidden) this.#later();
      else this.#step(event.key === "ArrowDown" ? 1 : -1);
    } else if (event.key === "Enter" && !this.#list.hidden && this.#active >= 0) {
      event.preventDefault();
      this.#options[this.#active].click();
    }
  }

  #close() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
    this.#asking = null;
    this.#shown = null;
    this.#list.hidden = true;
    this.#activate(-1);
    this.#input.setAttribute("aria-expanded", "false");
    this.#status.textContent = "";
  }
}

function groupsOf(results) {
  const groups = new Map();
  for (const one of results) {
    const group = groups.get(one.kind) ?? [];
    if (group.length < shownOfKind) groups.set(one.kind, [...group, one]);
  }
  return [...groups];
}

/** Whether a `/` would be a character of a text, or a key with another meaning. */
function isTyping({ target }) {
  return target instanceof Element && target.closest("input, textarea, select, [contenteditable]") !== null;
}

const form = document.querySelector("form.find");
const input = form?.querySelector("input[name=q]");
if (form && input) {
  const box = new FindBox(form, input);
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.altKey) return;
    const isSlash = event.key === "/" && !event.ctrlKey && !event.metaKey && !isTyping(event);
    const isK = event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.shiftKey;
    if (!isSlash && !isK) return;
    event.preventDefault();
    box.focus();
  });
}
