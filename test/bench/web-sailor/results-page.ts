/** What a bench measured, printed, and put into its page of results: between `<!-- name -->` and `<!-- /name -->`. */
import { readFileSync, writeFileSync } from "node:fs";

export class ResultsPage {
  readonly #file: string;
  readonly #measured = new Map<string, string>();

  constructor(file: string) {
    this.#file = file;
  }

  add(name: string, lines: readonly string[]): void {
    const text = lines.join("\n");
    console.log(`\n${text}`);
    this.#measured.set(name, text);
  }

  /** Once everything is measured: a page has one run's numbers. */
  write(): void {
    let page = readFileSync(this.#file, "utf8");
    for (const [name, text] of this.#measured) {
      const [begin, end] = [`<!-- ${name} -->`, `<!-- /${name} -->`];
      const [from, to] = [page.indexOf(begin), page.indexOf(end)];
      if (from === -1 || to < from) throw new Error(`${this.#file} has no ${begin} before ${end}`);
      page = `${page.slice(0, from + begin.length)}\n${text}\n${page.slice(to)}`;
    }
    writeFileSync(this.#file, page);
  }
}
