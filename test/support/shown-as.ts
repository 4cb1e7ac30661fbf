/** An answer on its papers: as a page, as a text, and as the text's words with single spaces. */
import { documentHtml } from "#coordinator/ask/html-rendering";
import type { AnyOperation } from "#coordinator/ask/operation";
import { documentText } from "#coordinator/ask/text-rendering";
import { anonymousVisit, type Visit } from "#coordinator/web/access";
import { noon } from "./store-world.ts";

export function shownAs(operation: AnyOperation, value: unknown, viewer: Visit = anonymousVisit) {
  const document = operation.view!(value, { input: {}, viewer, now: noon });
  const page = documentHtml(document, { viewer, path: operation.page!, query: {}, operation }).markup;
  const text = documentText(document, { width: null, colours: false });
  return { page, text, words: text.replace(/\s+/g, " ") };
}
