/**
 * A request and its answer as the blocks of WARC records: HTTP/1.1 messages, whichever HTTP carried them (no
 * form for HTTP/2 is agreed on). The body is kept as it was transferred, content codings included. Chunks are
 * gone when we get it, so `Transfer-Encoding` is kept under the name that Common Crawl gives it, and readers
 * do not look for chunks.
 */
import type { AnswerHead } from "../fetch/exchange.ts";
import type { AskedOfSite } from "../fetch/site-client.ts";

export function requestBlock({ url, headers }: Pick<AskedOfSite, "url" | "headers">): Buffer {
  const { host, pathname, search } = new URL(url);
  const lines = Object.entries({ host, connection: "keep-alive", ...headers }).map(
    ([name, value]) => `${name}: ${value}`,
  );
  return Buffer.from(`GET ${pathname}${search} HTTP/1.1\r\n${lines.join("\r\n")}\r\n\r\n`, "latin1");
}

export function responseHead(status: number, { reason, rawHeaders }: AnswerHead): Buffer {
  let text = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    const name = textOf(rawHeaders[at]!);
    // The pseudo-fields of HTTP/2.
    if (name.startsWith(":")) continue;
    const kept = name.toLowerCase() === "transfer-encoding" ? `X-Crawler-${name}` : name;
    text += `${kept}: ${textOf(rawHeaders[at + 1]!)}\r\n`;
  }
  return Buffer.from(`${text}\r\n`, "latin1");
}

/** The value of the first field of this name (in lower case), or null. */
export function fieldOf({ rawHeaders }: AnswerHead, wanted: string): string | null {
  for (let at = 0; at + 1 < rawHeaders.length; at += 2) {
    if (textOf(rawHeaders[at]!).toLowerCase() === wanted) return textOf(rawHeaders[at + 1]!);
  }
  return null;
}

function textOf(raw: string | Buffer): string {
  return typeof raw === "string" ? raw : raw.toString("latin1");
}
