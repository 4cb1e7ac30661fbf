/**
 * Asks hubs for subscriptions. The addresses of a hub come from feeds, that is from strangers: each name is looked up here, no
 * special-purpose address is connected to (unless the settings allow it), and the connection goes to the address that was
 * looked at. Bounded in time and bytes, two redirects at most (WebSub section 5.1), each as the first.
 */
import { Agent, buildConnector } from "undici";
import { parseAddress } from "#core/ip/address";
import { type AllowedSpecialPurpose, refusedBlockOf, specialPurposeOf } from "#core/ip/special-purpose";
import { urlHost } from "#core/ip/url-host";
import type { NameResolver } from "#core/name-resolver";
import { subscriptionForm } from "./web-sub.ts";

export type HubReply =
  /** The hub will verify it. */
  { readonly type: "accepted" } | { readonly type: "refused"; readonly words: string };

export interface HubClient {
  subscribe(request: {
    readonly hub: string;
    readonly callback: string;
    readonly topic: string;
    readonly secret: string;
  }): Promise<HubReply>;
}

export interface HubClientSettings {
  readonly resolver: NameResolver;
  readonly allowSpecialPurpose: AllowedSpecialPurpose;
  readonly userAgent: string;
  /** For one request as a whole. */
  readonly timeoutMs?: number;
  /** Who may have signed a hub's certificate, in PEM form; left out: the public authorities. */
  readonly authorities?: string;
}

const usualTimeoutMs = 10_000;
const mostRedirects = 2;
/** Of an answer; nothing of it is needed but a few words of a refusal. */
const maxAnswerBytes = 4096;

export function createHubClient(settings: HubClientSettings): HubClient {
  return {
    subscribe: async ({ hub, ...request }) => {
      const signal = AbortSignal.timeout(settings.timeoutMs ?? usualTimeoutMs);
      const body = subscriptionForm(request).toString();
      try {
        let at = hub;
        for (let redirects = 0; redirects <= mostRedirects; redirects += 1) {
          const answer = await post(at, body, signal, settings);
          if (answer.type !== "redirect") return answer;
          at = new URL(answer.location, at).href;
        }
        return { type: "refused", words: `more than ${mostRedirects} redirects` };
      } catch (error) {
        return { type: "refused", words: wordsOf(error) };
      }
    },
  };
}

async function post(
  hub: string,
  body: string,
  signal: AbortSignal,
  settings: HubClientSettings,
): Promise<HubReply | { readonly type: "redirect"; readonly location: string }> {
  const url = new URL(hub);
  const address = await addressOf(url, settings);
  if (typeof address !== "string") return { type: "refused", words: address.words };
  const agent = new Agent({ connections: 1, pipelining: 1, connect: connectorTo(address, settings) });
  try {
    const {
      statusCode,
      headers,
      body: answer,
    } = await agent.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method: "POST",
      headers: {
        "content-type": "application/x-www-form-urlencoded",
        "user-agent": settings.userAgent,
      },
      body,
      signal,
    });
    if (statusCode >= 200 && statusCode < 300) return { type: "accepted" };
    const { location } = headers;
    if ((statusCode === 307 || statusCode === 308) && typeof location === "string")
      return { type: "redirect", location };
    const words = await firstWords(answer);
    return { type: "refused", words: `status ${statusCode}${words === "" ? "" : `: ${words}`}` };
  } finally {
    await agent.destroy();
  }
}

/** Plain http would show the secret to the way there: it is for addresses that the settings allow as special ones. */
async function addressOf(
  url: URL,
  { resolver, allowSpecialPurpose }: HubClientSettings,
): Promise<string | { readonly words: string }> {
  if (url.protocol !== "https:" && url.protocol !== "http:")
    return { words: `${url.protocol} is no scheme of a hub` };
  const found = await resolver.resolve(urlHost(url));
  if ("failed" in found) return { words: found.failed };
  for (const text of found.addresses) {
    const address = parseAddress(text);
    const block = address === null ? "no address" : refusedBlockOf(address, allowSpecialPurpose);
    if (block !== null) return { words: `${text} is a special-purpose address (${block})` };
    if (url.protocol === "http:" && specialPurposeOf(address!) === null)
      return { words: "a hub without https would show everybody the secret" };
  }
  return found.addresses[0]!;
}

/** To this address, whatever the name says by then; its certificate is the name's. */
function connectorTo(
  address: string,
  { authorities }: Pick<HubClientSettings, "authorities">,
): buildConnector.connector {
  const connect = buildConnector({
    timeout: usualTimeoutMs,
    ...(authorities === undefined ? {} : { ca: authorities }),
  });
  return (options, done) => {
    const isName = parseAddress(options.hostname.replace(/^\[|\]$/g, "")) === null;
    connect({ ...options, hostname: address, ...(isName ? { servername: options.hostname } : {}) }, done);
  };
}

async function firstWords(answer: AsyncIterable<Uint8Array>): Promise<string> {
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

function wordsOf(error: unknown): string {
  if (error instanceof Error && error.name === "TimeoutError") return "no answer in time";
  return (error instanceof Error ? error.message || error.name : String(error)).slice(0, 300);
}
