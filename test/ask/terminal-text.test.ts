/** A document on a terminal: links and folded content of pages are left out without a trace. */
import { expect, it } from "vitest";
import { column, empty, section, table } from "#coordinator/ask/document";
import type { Node } from "#coordinator/ask/operation";
import { documentText } from "#coordinator/ask/text-rendering";
import { plainText } from "#coordinator/ask/words";
import { html } from "#coordinator/web/html";

const text = (...nodes: Node[]) => documentText({ title: "", nodes }, { width: null, colours: false });

it("next steps that are only links are left out, and those in words stay", () => {
  const links = html`<a href="/who">Who would crawl it</a> · <a href="/submit">Submit URLs of it</a>`;

  expect(text(empty("Unknown.", links))).toBe("Unknown.");
  expect(text(empty("None.", html`Make one: <a href="/x">here</a>.`))).toBe("None. Make one: here.");
});

it("small print that consists of links leaves no brackets", () => {
  const cells = (more: string | ReturnType<typeof html>) =>
    text(
      table<string>({
        ...{ label: "", rows: ["news"] },
        columns: [column("", "What", (name) => name, { more: () => more })],
      }),
    );

  expect(cells(html` <a class="small" href="/changes">changes</a>`)).toMatch(/news$/);
  expect(cells(" being applied")).toMatch(/news \(being applied\)$/);
  expect(plainText(html`news <span class="small"><a class="small" href="/x">all</a></span>`)).toBe("news");
});

it("details that a page folds are left out", () => {
  const folded = html`changed <details><summary>1 value</summary><del>2</del><ins>3</ins></details>`;

  expect(plainText(folded)).toBe("changed");
});

it("a section without a title is only its content", () => {
  expect(text(section("", [empty("No policy matches.")]))).toBe("No policy matches.");
});
