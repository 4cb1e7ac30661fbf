/**
 * Filters among the words, as people type them in search engines: `site:example.org`, `-site:ads.example`, `lang:de`,
 * `after:2026-01-01`, `before:2026-02`, `title:ferry`, `type:text`. They equal the filters of the form and override
 * them.
 */
import { dayEnd, dayStart, filterFault, type SearchOptions } from "./query.ts";
import type { FilterName } from "./search-answer.ts";

/** The parsed input. */
interface TypedSearch {
  readonly words: string;
  readonly options: SearchOptions;
}

interface Operator {
  readonly filter: FilterName;
  /**
   * Turns the text after the colon into the filter's value, or returns null if it cannot be one. If absent, the text is the
   * value.
   */
  readonly read?: (text: string) => string | null;
  /** Set if several apply together. Otherwise the last one counts. */
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

/** Phrases are skipped, whatever they contain. An operator starts a word. */
const typed = /"[^"]*"|(?<!\S)(-?)([a-z]+):(?:"([^"]*)"|([^\s"]+))/giu;

/** A text: why one of the filters is invalid. */
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
  // The words of `title:` are searched for, too.
  return { words: left === "" ? (options.title ?? "") : left, options };
}

const needed = (filter: FilterName): string =>
  filter === "from" || filter === "to" ? "must be a day, such as 2026-03-01" : "needs a value";
