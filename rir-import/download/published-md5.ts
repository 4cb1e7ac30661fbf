/**
 * The MD5 sums that registries publish beside their statistics, in BSD's form (`MD5 (name) = sum`) or in
 * coreutils' (`sum  name`). They guard against broken transfers and copies, not against forgers: TLS does that.
 */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { DownloadFailure } from "./download-failure.ts";
import type { HttpClient } from "./http-client.ts";
import { noSecrets } from "./http-client.ts";
import type { Watch } from "./watch.ts";

const maxSumBytes = 4096;

/** The sum published at `<url>.md5`, or null where there is none (404, 410). Throws a DownloadFailure. */
export async function publishedMd5(client: HttpClient, url: string, watch: Watch): Promise<string | null> {
  const headers = { accept: "text/plain, */*", "accept-encoding": "identity" };
  const answer = await client.get({ url: `${url}.md5`, headers, secrets: noSecrets, watch });
  try {
    if (answer.status === 404 || answer.status === 410) return null;
    if (answer.status !== 200) {
      throw new DownloadFailure("later", `its checksum cannot be had: the server answers ${answer.status}`);
    }
    return md5In(await startOf(answer.body));
  } finally {
    answer.close();
  }
}

/** The one sum in the text. Throws a DownloadFailure when there is none, or several. */
export function md5In(text: string): string {
  const sums = new Set(text.match(/(?<![0-9A-Za-z])[0-9A-Fa-f]{32}(?![0-9A-Za-z])/g));
  const [sum] = sums;
  if (sums.size === 1 && sum !== undefined) return sum.toLowerCase();
  const found = JSON.stringify(text.slice(0, 60));
  throw new DownloadFailure("never", `its checksum file holds ${sums.size} MD5 sums, not one: ${found}`);
}

export async function md5OfFile(path: string): Promise<string> {
  const hash = createHash("md5");
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) hash.update(chunk);
  return hash.digest("hex");
}

async function startOf(body: AsyncIterable<Buffer>): Promise<string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of body) {
    pieces.push(piece);
    bytes += piece.length;
    if (bytes > maxSumBytes) break;
  }
  return Buffer.concat(pieces).subarray(0, maxSumBytes).toString("latin1");
}
