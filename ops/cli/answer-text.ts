/**
 * Renders a command's own result as terminal text in the style of the rooms' answers: single values become facts, lists become
 * tables. Names imply units: `rttMs`, `bodyBytes`.
 */
import { column, facts, section, table } from "#coordinator/ask/document";
import type { Inline, Node } from "#coordinator/ask/operation";
import { documentText } from "#coordinator/ask/text-rendering";
import { textOf } from "#coordinator/ask/words";
import { bytesText, instantWords, msText, percentText, spanWords } from "#core/format";
import { terminalPaper } from "./output.ts";

/** The members to print of each list, separated by spaces. */
type Columns = Readonly<Record<string, string>>;

type Thing = Readonly<Record<string, unknown>>;

export const answerText = (answer: object, columns: Columns = {}): string =>
  documentText({ title: "", nodes: nodesOf(answer as Thing, columns) }, terminalPaper());

/** Puts one-line values first, then tables and larger parts. */
function nodesOf(thing: Thing, columns: Columns): readonly [Node, ...Node[]] {
  const shown = Object.entries(thing).filter(([name, value]) => isNews(value) || columns[name] !== undefined);
  const parts = shown.filter(([, value]) => isPart(value));
  const lines = shown.filter((one) => !parts.includes(one));
  return [
    facts(...lines.map(([name, value]) => [titleOf(name), cell(name, value)] as const)),
    ...parts.flatMap(([name, value]) => {
      if (isThings(value)) return [section(titleOf(name), [tableOf(name, value, columns)])];
      const [own, ...further] = nodesOf(value as Thing, columns);
      return [section(titleOf(name), [own]), ...further];
    }),
  ];
}

const isThing = (value: unknown): value is Thing =>
  typeof value === "object" && value !== null && !Array.isArray(value) && !(value instanceof Date);

const isThings = (value: unknown): value is readonly Thing[] =>
  Array.isArray(value) && value.length > 0 && value.every(isThing);

const isPart = (value: unknown) =>
  isThings(value) || (isThing(value) && Object.values(value).some((one) => isThings(one) || isThing(one)));

/** Unknown and false values are omitted. */
const isNews = (value: unknown) =>
  value !== null &&
  value !== undefined &&
  value !== "" &&
  value !== false &&
  !(Array.isArray(value) && value.length === 0);

function tableOf(name: string, things: readonly Thing[], columns: Columns): Node {
  const wanted = columns[name]?.split(" ") ?? [...new Set(things.flatMap((thing) => Object.keys(thing)))];
  const used = wanted.filter((one) => things.some((thing) => isNews(thing[one])));
  const isNumber = (one: string) => things.some((thing) => typeof thing[one] === "number");
  return table<Thing>({
    ...{ label: name, rows: things },
    columns: used.map((one) =>
      column(one, titleOf(one), (thing) => cell(one, thing[one]), isNumber(one) ? { kind: "number" } : {}),
    ),
  });
}

/** Example: `lastUsedAt` becomes “last used”. */
const titleOf = (name: string) =>
  name.replace(/(?<=.)(At|Ms)$/, "").replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

const mostListed = 8;

function cell(name: string, value: unknown): Inline | boolean {
  if (typeof value === "number") return numberText(name, value);
  if (typeof value === "string")
    return /^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(value) ? instantWords(value) : value;
  if (Array.isArray(value)) {
    const more = value.length > mostListed ? ` and ${value.length - mostListed} more` : "";
    const listed = value.slice(0, mostListed).map((one) => textOf(cell(name, one)));
    return value.length === 0 ? "none" : `${listed.join(", ")}${more}`;
  }
  if (!isThing(value)) return value as Inline | boolean;
  const parts = Object.entries(value).filter(([, one]) => isNews(one));
  return parts.map(([part, one]) => `${titleOf(part)} ${textOf(cell(part, one))}`).join(", ");
}

/** Numbers that people may type again are printed without separators. */
const isNumberOf = /(^|\.)(number|version|status|epoch|\w*Id)$/;

function numberText(name: string, value: number): string {
  if (/Ms$|^ms$/.test(name)) return msText(value);
  if (/bytes/i.test(name)) return bytesText(value);
  if (/seconds$/i.test(name)) return spanWords(value);
  if (/(^|\.)share$/.test(name)) return percentText(value);
  if (isNumberOf.test(name)) return String(value);
  return value.toLocaleString("en-GB", Number.isInteger(value) ? {} : { maximumSignificantDigits: 3 });
}
