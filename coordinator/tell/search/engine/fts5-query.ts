/** A question in the words of FTS5: an expression for what matches, and conditions on table facts for the filters. */
import { isOneOfPair } from "#core/words/words";
import { contentTypes, unstated } from "../query.ts";
import type { SearchFilters } from "../search-answer.ts";
import type { TermArm, TermSequence } from "./search-engine.ts";
import type { SqliteValue } from "./sqlite-store.ts";

/**
 * Terms are always quoted. A configuration is a token after a `=`, which no term contains. Returns null if nothing can
 * match. `inHeads`: the wanted words stand in titles, headings or links.
 */
export function matchOf({ configurations, all, title, none }: TermArm, inHeads = false): string | null {
  const groups = all.map((group) => group.filter((sequence) => sequence.length > 0));
  if (configurations.length === 0 || groups.some((group) => group.length === 0)) return null;
  const wanted = [
    anyOf(configurations.map((name) => quoted(`=${name}`))),
    ...groups.map((group) => (inHeads ? "{title headings anchors} : " : "") + anyOf(group.map(phrase))),
    ...title.map((sequence) => `title : (${phrase(sequence)})`),
  ].join(" AND ");
  return none.length === 0 ? wanted : `(${wanted}) NOT ${anyOf(none.map(phrase))}`;
}

const anyOf = (expressions: readonly string[]) => `(${expressions.join(" OR ")})`;

function phrase(terms: TermSequence): string {
  return `${terms.map(quoted).join(" + ")}${isOneOfPair(terms.at(-1)!) ? " *" : ""}`;
}

/** SQLite takes a NUL for the end of the expression. */
const quoted = (term: string) => `"${term.replaceAll('"', '""').replaceAll("\0", " ")}"`;

const dayMs = 86_400_000;

/** For table facts as `f`. The text is empty if nothing is filtered; otherwise it begins with `and`. */
export function filterSql(filters: SearchFilters): { readonly sql: string; readonly values: SqliteValue[] } {
  const sql: string[] = [];
  const values: SqliteValue[] = [];
  const add = (condition: string, ...added: SqliteValue[]) => {
    sql.push(`and ${condition}`);
    values.push(...added);
  };
  const { host, excludeHost, language, country, crawler, from, to, type, preference } = filters;
  if (host !== null) add(isBelow, host, host);
  for (const site of excludeHost?.split(",") ?? []) add(`not ${isBelow}`, site, site);
  if (language !== null) add("f.language = ?", language);
  if (country !== null) add("f.country = ?", country);
  if (crawler !== null) add("f.crawler = ?", crawler);
  if (from !== null) add(`${date} >= ?`, Date.parse(`${from}T00:00:00Z`));
  if (to !== null) add(`${date} < ?`, Date.parse(`${to}T00:00:00Z`) + dayMs);
  if (type !== null)
    add("f.content_type in (select value from json_each(?))", JSON.stringify(contentTypes[type] ?? []));
  if (preference !== null) {
    const [use = "", answer = ""] = preference.split("=");
    add(`coalesce(f.uses ->> ?, '${unstated}') = ?`, use, answer);
  }
  return { sql: sql.join(" "), values };
}

const date = "coalesce(f.published, f.fetched)";

/** The host itself, or one below it. */
const isBelow = "(substr('.' || f.host, -length(?) - 1) = '.' || ?)";
