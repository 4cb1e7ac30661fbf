/**
 * An answer of the API as text for a terminal, by its form alone: what is one value is a line, what is a list of things a table.
 * Units are told by the names: `rttMs`, `bodyBytes`, `createdAt`.
 */
import { differenceText, type TextDifference } from "#coordinator/changes/text-difference";
import { bytesText, msText, percentText, spanWords } from "#core/format";
import { printable } from "#core/terminal-text";
import { formatTable } from "./output.ts";

/** By the name of a list, the members that are printed of each, with spaces between them; empty: the list is left out. */
export type Columns = Readonly<Record<string, string>>;

type Thing = Readonly<Record<string, unknown>>;

export function answerText(answer: unknown, columns: Columns = {}): string {
  // As programs get it: dates are texts then.
  const value: unknown = JSON.parse(JSON.stringify(answer ?? null));
  if (isThings(value)) return tableText("", value, columns);
  return isThing(value) ? blocksOf(value, columns).join("\n\n") : cellText("", value);
}

const isThing = (value: unknown): value is Thing =>
  typeof value === "object" && value !== null && !Array.isArray(value);

const isThings = (value: unknown): value is readonly Thing[] =>
  Array.isArray(value) && value.length > 0 && value.every(isThing);

const isEmpty = (value: unknown) =>
  value === null || value === undefined || value === "" || (Array.isArray(value) && value.length === 0);

const hasParts = (value: Thing) => Object.values(value).some((one) => isThings(one) || isThing(one));

/** When and how it was asked, and what is not so, is no news. */
const isNews = ([name, value]: readonly [string, unknown]) =>
  !isEmpty(value) && value !== false && !["at", "now", "offset", "limit"].includes(name);

/** First what is a line each, then the tables, then the larger parts. */
function blocksOf(thing: Thing, columns: Columns): string[] {
  const shown = Object.entries(thing).filter((entry) => columns[entry[0]] !== "" && isNews(entry));
  const isBlock = ([, value]: readonly [string, unknown]) =>
    isThings(value) || (isThing(value) && hasParts(value));
  const lines = shown.filter((entry) => !isBlock(entry));
  const width = Math.max(0, ...lines.map(([name]) => titleOf(name).length)) + 2;
  const facts = lines.map(([name, value]) => `${titleOf(name).padEnd(width)}${cellText(name, value)}`);
  const blocks = Object.entries(thing).flatMap(([name, value]) => {
    if (Array.isArray(value) && value.length === 0) return columns[name] ? [`${titleOf(name)}: none`] : [];
    if (columns[name] === "" || !isNews([name, value]) || !isBlock([name, value])) return [];
    if (isThings(value)) return [tableText(titleOf(name), value, columns)];
    return [[titleOf(name), ...blocksOf(value as Thing, columns)].join("\n")];
  });
  return [...(facts.length === 0 ? [] : [facts.join("\n")]), ...blocks];
}

function tableText(title: string, things: readonly Thing[], columns: Columns): string {
  const [name] = Object.entries(columns).find(([key]) => titleOf(key) === title) ?? [];
  const wanted = name === undefined ? namesIn(things) : columns[name]!.split(" ");
  const used = wanted.filter((one) => things.some((thing) => !isEmpty(memberOf(thing, one))));
  const table = formatTable(
    used.map((one) => ({
      title: titleOf(one),
      ...(things.every((thing) => ["number", "object"].includes(typeof memberOf(thing, one))) &&
      things.some((thing) => typeof memberOf(thing, one) === "number")
        ? { align: "right" as const }
        : {}),
    })),
    things.map((thing) => used.map((one) => cellText(one, memberOf(thing, one)))),
  );
  return title === "" ? table : `${title}\n${table}`;
}

const namesIn = (things: readonly Thing[]) => [...new Set(things.flatMap((thing) => Object.keys(thing)))];

/** `crawler.name`: a member of a member. */
function memberOf(thing: Thing, path: string): unknown {
  return path
    .split(".")
    .reduce<unknown>(
      (value, name) => (typeof value === "object" ? (value as Thing | null)?.[name] : undefined),
      thing,
    );
}

/** `lastUsedAt` is “last used”. */
function titleOf(name: string): string {
  const words = name.replace(/(?<=.)(At|Ms)$/, "").replace(/\.(name|words)$/, "");
  return words.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`).replaceAll(".", " ");
}

const mostWords = 300;
const mostListed = 8;
/** What people type again as it stands. */
const isNumberOf = /(^|\.)(next|number|version|status|\w*Id|from|to|takesBack|beforeId)$/;
const isShare = /(^|\.)(share|low|high|fresh\d*|freshness|successRate)$/;

function cellText(name: string, value: unknown): string {
  if (isEmpty(value)) return "–";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return numberText(name, value);
  if (typeof value === "string")
    return /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(value)
      ? value.slice(0, 16).replace("T", " ")
      : printable(value, mostWords);
  if (name === "difference") return printable(differenceText(value as TextDifference), mostWords);
  if (Array.isArray(value)) {
    const more = value.length > mostListed ? ` and ${value.length - mostListed} more` : "";
    return `${value
      .slice(0, mostListed)
      .map((one) => cellText(name, one))
      .join(", ")}${more}`;
  }
  const thing = value as Thing;
  const named = [thing.name ?? thing.url ?? thing.host, thing.words ?? thing.text].filter(
    (one) => !isEmpty(one),
  );
  if (named.length > 0) return named.map((one) => cellText(name, one)).join(": ");
  return Object.entries(thing)
    .filter(isNews)
    .map(([part, one]) => `${titleOf(part)} ${cellText(part, one)}`)
    .join(", ");
}

function numberText(name: string, value: number): string {
  if (/Ms$|^ms$/.test(name)) return msText(value);
  if (/bytes/i.test(name)) return bytesText(value);
  if (/Seconds$/.test(name)) return spanWords(value);
  if (isShare.test(name)) return percentText(value);
  if (isNumberOf.test(name)) return String(value);
  return Number.isInteger(value)
    ? value.toLocaleString("en-GB")
    : value.toLocaleString("en-GB", { maximumSignificantDigits: 3 });
}
