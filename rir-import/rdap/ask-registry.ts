/**
 * What the registry says of one range today (RDAP: queries RFC 9082, answers RFC 9083), for a look at one range
 * between two imports. The server is found through IANA's bootstrap files; answers are bounded in size and time.
 * Expected outcomes are values: nothing registered, "too many requests", a server that cannot be understood.
 */
import type { Registry } from "#coordinator/subnets/subnet";
import { formatAddress } from "#core/ip/address";
import {
  firstAddress,
  formatRange,
  type IpRange,
  prefixLengthOf,
  rangeCovers,
  rangeOfPrefix,
} from "#core/ip/range";
import type { Clock } from "../download/clock.ts";
import { downloadFailure } from "../download/download-failure.ts";
import { retryAfterMs } from "../download/download-part.ts";
import { type HttpAnswer, HttpClient, type HttpSettings, noSecrets, Watch } from "../download/http-client.ts";
import { type HolderReference, type NetworkRecord, registryNamed } from "../formats/record.ts";
import { maxTextLength } from "../formats/text-decoding.ts";
import { type RdapBootstrap, serviceFor } from "./bootstrap.ts";
import { type RdapNetwork, readNetwork } from "./rdap-network.ts";

export interface RdapSettings {
  readonly bootstrap: { readonly ipv4: RdapBootstrap; readonly ipv6: RdapBootstrap };
  readonly http: HttpSettings;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** For one query, redirects included. */
  readonly timeoutMs: number;
}

export type RdapAnswer =
  | {
      readonly type: "found";
      /** Where the answer came from, after redirects. */
      readonly url: string;
      readonly registry: Registry | null;
      readonly network: RdapNetwork;
      /** As an import would have it from a WHOIS database. */
      readonly record: NetworkRecord;
    }
  | { readonly type: "not registered"; readonly url: string }
  | { readonly type: "asked to wait"; readonly url: string; readonly seconds: number | null }
  /** The bootstrap file names nobody for this range. */
  | { readonly type: "no server" }
  | { readonly type: "failed"; readonly url: string; readonly reason: string };

/** Real answers are 2 to 60 KB. */
const maxAnswerBytes = 2 * 2 ** 20;

/** Asks for the most specific network that holds the range. Rejects only with the signal's reason. */
export async function askRegistry(settings: RdapSettings, range: IpRange): Promise<RdapAnswer> {
  const service = serviceFor(settings.bootstrap[range.family === 4 ? "ipv4" : "ipv6"], range);
  if (service === null) return { type: "no server" };
  const client = new HttpClient(settings.http);
  try {
    let answer: RdapAnswer = { type: "no server" };
    for (const query of queriesFor(range)) {
      answer = await askServers(
        client,
        settings,
        service.servers.map((server) => `${server}${query}`),
      );
      if (answer.type !== "found" || rangeCovers(answer.network.range, range)) return answer;
    }
    return answer;
  } finally {
    await client.close();
  }
}

/**
 * `ip/<address>` or `ip/<address>/<length>` (RFC 9082 section 3.1.1). RDAP knows no `a - b`: such a range is found
 * by its first address; where that belongs to something smaller, by the smallest block around the range.
 */
function queriesFor(range: IpRange): readonly string[] {
  const first = formatAddress(firstAddress(range));
  const length = prefixLengthOf(range);
  if (length !== null) return [range.first === range.last ? `ip/${first}` : `ip/${first}/${length}`];
  for (let around = range.family === 4 ? 31 : 127; around >= 0; around--) {
    const block = rangeOfPrefix(firstAddress(range), around)!;
    if (rangeCovers(block, range)) return [`ip/${first}`, `ip/${formatRange(block)}`];
  }
  return [`ip/${first}`];
}

/** The next server only when one cannot be reached or understood. */
async function askServers(
  client: HttpClient,
  settings: RdapSettings,
  urls: readonly string[],
): Promise<RdapAnswer> {
  let answer: RdapAnswer = { type: "no server" };
  for (const url of urls) {
    answer = await ask(client, settings, url);
    if (answer.type !== "failed") return answer;
  }
  return answer;
}

async function ask(client: HttpClient, settings: RdapSettings, url: string): Promise<RdapAnswer> {
  const { clock, timeoutMs, signal } = settings;
  const seconds = timeoutMs / 1000;
  const timing = { clock, ms: timeoutMs, again: "later", parent: signal } as const;
  // The idle watch is restarted by every piece of the answer; the total one is not.
  const total = new Watch({ ...timing, reason: `no answer within ${seconds} seconds` });
  const watch = new Watch({ ...timing, reason: `nothing came for ${seconds} seconds`, parent: total.signal });
  total.restart();
  try {
    const headers = {
      accept: "application/rdap+json, application/json;q=0.5",
      "accept-encoding": "identity",
    };
    const answer = await client.get({ url, headers, secrets: noSecrets, watch });
    try {
      return await understood(answer, url, clock.now());
    } finally {
      answer.close();
    }
  } catch (error) {
    if (signal.aborted) throw signal.reason;
    return { type: "failed", url, reason: downloadFailure(error).message };
  } finally {
    total.pause();
  }
}

async function understood(answer: HttpAnswer, askedUrl: string, now: Date): Promise<RdapAnswer> {
  const { status, url } = answer;
  if (status === 404) return { type: "not registered", url };
  if (status === 429) {
    const waitMs = retryAfterMs(answer.headers, now);
    return { type: "asked to wait", url, seconds: waitMs === null ? null : Math.ceil(waitMs / 1000) };
  }
  if (status !== 200) return { type: "failed", url, reason: `the server answers ${status}` };
  const network = await networkIn(answer);
  if (typeof network === "string") return { type: "failed", url, reason: network };
  const registry = registryOf([network.port43 ?? "", new URL(url).hostname, new URL(askedUrl).hostname]);
  return { type: "found", url, registry, network, record: toNetworkRecord(network, registry) };
}

async function networkIn(answer: HttpAnswer): Promise<RdapNetwork | string> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of answer.body) {
    bytes += piece.length;
    if (bytes > maxAnswerBytes) return `the answer is larger than ${maxAnswerBytes} bytes`;
    pieces.push(piece);
  }
  try {
    return readNetwork(JSON.parse(Buffer.concat(pieces).toString("utf8")));
  } catch {
    return "the answer is not JSON";
  }
}

/** The registry in a server's name: `whois.ripe.net`, `rdap.db.ripe.net`; the first that has one. */
function registryOf(hosts: readonly string[]): Registry | null {
  const labels = hosts.flatMap((host) => host.split("."));
  return labels.map((label) => registryNamed(label)).find((registry) => registry !== null) ?? null;
}

// An RDAP network as the record that an import would have made of the same registration.

/** `line` is 1: the answer is one object. */
function toNetworkRecord(network: RdapNetwork, registry: Registry | null): NetworkRecord {
  const { range, name, country } = network;
  return {
    type: "network",
    line: 1,
    source: "whois",
    range,
    registry,
    name: name.slice(0, maxTextLength),
    country: country === "ZZ" ? null : country,
    holder: holderReference(network, registry),
  };
}

function holderReference(
  { holder, country }: RdapNetwork,
  registry: Registry | null,
): HolderReference | null {
  if (holder === null) return null;
  const { handle, name } = holder;
  if (handle !== null) return { type: "handle", handle: handle.slice(0, maxTextLength), registry, name };
  return name === null ? null : { type: "name", name, registry, country };
}
