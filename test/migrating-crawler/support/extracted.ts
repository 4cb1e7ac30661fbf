/** Extracts pages and lists without a site. */
import { type Extracted, extractPage, type FetchedBody } from "#crawler/extract/extract-page";
import { WorkTurns } from "#crawler/extract/read-list";
import { readPage } from "#crawler/extract/read-page";
import { pageExtract } from "#protocol/result";

export const noWaiting = () => new WorkTurns(async () => {});

export const bodyOf = (html: string | Buffer, changes: Partial<FetchedBody> = {}): FetchedBody => ({
  url: "https://site.example/folder/page",
  bytes: Buffer.from(html as string),
  contentType: "text/html; charset=utf-8",
  contentLanguage: "en",
  robotsTag: undefined,
  nowMs: Date.parse("2026-11-22T12:00:00Z"),
  quiet: async () => {},
  ...changes,
});

/** Validates the extract by the message's schema. */
export async function extracted(
  html: string | Buffer,
  changes: Partial<FetchedBody> = {},
): Promise<Extracted["page"]> {
  return pageExtract.parse((await extractPage(bodyOf(html, changes))).page);
}

export const readOf = async (html: Parameters<typeof readPage>[0], isXml = false) =>
  await readPage(html, noWaiting(), isXml);
