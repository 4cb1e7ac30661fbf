/** A page as a crawler ships it: really extracted, with made-up times that are the same in every run. */
import { seededRandom } from "#core/random";
import { extractPage } from "#crawler/extract/extract-page";
import type { FetchResult } from "#protocol/result";

export async function resultOf(url: string, html: Buffer): Promise<FetchResult> {
  const random = seededRandom(html.length);
  const body = { url, bytes: html, contentType: "text/html", contentLanguage: null, robotsTag: undefined };
  const { page } = await extractPage({ ...body, quiet: async () => {} });
  const tenths = () => Math.round(random() * 2000) / 10;
  return {
    url,
    fetchedAt: new Date(1_795_000_000_000 + Math.floor(random() * 1e8)).toISOString(),
    outcome: { type: "fetched", status: 200, truncated: false },
    address: "198.51.100.7",
    timing: { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: tenths(), totalMs: tenths() },
    wireBytes: Math.floor(html.length / 4),
    bodyBytes: html.length,
    etag: null,
    lastModified: null,
    hostDelayMs: 1000,
    page,
  };
}
