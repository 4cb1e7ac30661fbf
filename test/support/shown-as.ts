/** An answer as a page, as text with single spaces, and as lines of CSV by column. */
import { documentHtml } from "#coordinator/ask/html-rendering";
import type { AnyOperation } from "#coordinator/ask/operation";
import { documentCsv, documentText } from "#coordinator/ask/text-rendering";
import { anonymousVisit, type Visit } from "#coordinator/web/access";
import { noon } from "./store-world.ts";

export function shownAs(operation: AnyOperation, value: unknown, viewer: Visit = anonymousVisit) {
  const document = operation.view!(value, { input: {}, viewer, now: noon });
  const page = documentHtml(document, { viewer, path: operation.page!, query: {}, operation }).markup;
  const text = documentText(document, { width: null, colours: false });
  const { columns, rows } = documentCsv(document)?.() ?? { columns: [], rows: [] };
  const lines = rows.map((row) => Object.fromEntries(columns.map((name, at) => [name, row[at]])));
  return { page, text, words: text.replace(/\s+/g, " "), lines };
}
