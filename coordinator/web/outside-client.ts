/**
 * Connections to addresses from settings or strangers. Names are resolved here, special-purpose addresses are refused
 * unless allowed, and the connection goes to the checked address.
 */
import { buildConnector } from "undici";
import { parseAddress } from "#core/ip/address";
import { type AllowedSpecialPurpose, refusedBlockOf, specialPurposeOf } from "#core/ip/special-purpose";
import { urlHost } from "#core/ip/url-host";
import type { NameResolver } from "#core/name-resolver";

export interface OutsideRules {
  readonly resolver: NameResolver;
  readonly allowSpecialPurpose: AllowedSpecialPurpose;
}

/** Plain http is allowed only for permitted special-purpose addresses, because anybody on its route can read it. */
export async function outsideAddress(
  url: URL,
  { resolver, allowSpecialPurpose }: OutsideRules,
): Promise<string | { readonly words: string }> {
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return { words: `${url.protocol} is neither https: nor http:` };
  const found = await resolver.resolve(urlHost(url));
  if ("failed" in found) return { words: found.failed };
  for (const text of found.addresses) {
    const address = parseAddress(text);
    const block = address === null ? "no address" : refusedBlockOf(address, allowSpecialPurpose);
    if (block !== null) return { words: `${text} is a special-purpose address (${block})` };
    if (url.protocol === "http:" && specialPurposeOf(address!) === null)
      return { words: "without https everybody on the way could read what is sent" };
  }
  return found.addresses[0]!;
}

/**
 * Connects to the checked address, even if the name resolves to another one by then, and verifies the name's certificate.
 * `authorities` is PEM (default: the public ones).
 */
export function connectorTo(
  address: string,
  { timeoutMs, authorities }: { readonly timeoutMs: number; readonly authorities?: string },
): buildConnector.connector {
  const connect = buildConnector({
    timeout: timeoutMs,
    ...(authorities === undefined ? {} : { ca: authorities }),
  });
  return (options, done) => {
    const isName = parseAddress(options.hostname.replace(/^\[|\]$/g, "")) === null;
    connect({ ...options, hostname: address, ...(isName ? { servername: options.hostname } : {}) }, done);
  };
}

/** Only a few words of a refusal are needed. */
const maxAnswerBytes = 4096;

export async function firstWords(answer: AsyncIterable<Uint8Array>): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of answer) {
    bytes += chunk.byteLength;
    chunks.push(chunk);
    if (bytes >= maxAnswerBytes) break;
  }
  const text = Buffer.concat(chunks).toString("utf8", 0, maxAnswerBytes);
  return text
    .replace(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, 200);
}

export function connectionWords(error: unknown): string {
  if (error instanceof Error && error.name === "TimeoutError") return "no answer in time";
  return (error instanceof Error ? error.message || error.name : String(error)).slice(0, 300);
}
