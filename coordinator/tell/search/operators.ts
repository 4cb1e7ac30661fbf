/**
 * Filters among the words, as people type them in search engines: `site:example.org`, `-site:ads.example`, `lang:de`,
 * `after:2026-01-01`, `before:2026-02`, `title:ferry`, `type:text`. They are the same filters as those of the form; a
 * filter among the words is the newer of the two, and holds.
 */
import { dayEnd, dayStart, filterFault, type SearchOptions } from "./query.ts";
import type { FilterName } from "./search-answer.ts";

/** What was typed, taken apart. */
export interface TypedSearch {
  readonly words: string;
  readonly options: SearchOptions;
}

interface Operator {
  readonly filter: FilterName;
  /** Of what stands after the colon; left out: it is the filter. Null: it cannot be one. */
  readonly read?: (text: string) => string | null;
  /** Typed several times, all of them hold; left out: the last. */
  readonly joinedBy?: string;
}

const operators: Readonly<Record<string, Operator>> = {
  site: { filter: "host" },
  host: { filter: "host" },
  "-site": { filter: "excludeHost", joinedBy: "," },
  "-host": { filter: "excludeHost", joinedBy: "," },
  lang: { filter: "language" },
  language: { filter: "language" },
  country: { filter: "country" },
  crawler: { filter: "crawler" },
  after: { filter: "from", read: dayStart },
  before: { filter: "to", read: dayEnd },
  title: { filter: "title", joinedBy: " " },
  intitle: { filter: "title", joinedBy: " " },
  type: { filter: "type" },
  filetype: { filter: "type" },
  states: { filter: "preference" },
};

/** A phrase is passed over, whatever it holds; an operator begins a word. */
const typed = /"[^"]*"|(?<!\S)(-?)([a-z]+):(?:"([^"]*)"|([^\s"]+))/giu;

/** A text: why one of the filters cannot be one. */
export function readOperators(words: string, given: SearchOptions): TypedSearch | string {
  const found: Partial<Record<FilterName, string>> = {};
  let fault: string | null = null;
  const rest = words.replace(
    typed,
    (whole, sign?: string, name?: string, quoted?: string, plain?: string) => {
      const operator = name === undefined ? undefined : operators[`${sign}${name.toLowerCase()}`];
      if (operator === undefined) return whole;
      const { filter, read = (text) => text, joinedBy } = operator;
      const value = read((quoted ?? plain ?? "").trim()) ?? "";
      fault ??= value === "" ? `${whole}: ${needed(filter)}` : filterFault({ [filter]: value });
      const before = joinedBy === undefined ? undefined : found[filter];
      found[filter] = before === undefined ? value : `${before}${joinedBy}${value}`;
      return " ";
    },
  );
  const options = { ...given, ...found };
  fault ??= filterFault(options);
  if (fault !== null) return fault;
  const left = rest.replace(/\s+/g, " ").trim();
  // A title to look for is words to look for.
  return { words: left === "" ? (options.title ?? "") : left, options };
}

const needed = (filter: FilterName): string =>
  filter === "from" || filter === "to" ? "must be a day, such as 2026-03-01" : "needs a value";
