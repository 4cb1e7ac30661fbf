/**
 * What the registry says of one range today (RDAP: queries RFC 9082, answers RFC 9083), for a look at one range
 * between two imports. The server is found through IANA's bootstrap files; answers are bounded in size and time.
 * Expected outcomes are values: nothing registered, "too many requests", a server that cannot be understood.
 */

import { z } from "zod";
import { holderOf } from "#coordinator/subnets/holder-name";
import type { Registry } from "#coordinator/subnets/subnet";
import { retryAfterSeconds } from "#core/foreign-dates";
import { formatAddress, parseAddress } from "#core/ip/address";
import {
  firstAddress,
  formatRange,
  type IpRange,
  prefixLengthOf,
  rangeBetween,
  rangeCovers,
  rangeOfPrefix,
} from "#core/ip/range";
import type { Clock } from "../download/clock.ts";
import { downloadFailure } from "../download/download-failure.ts";
import { type HttpAnswer, HttpClient, type HttpSettings, noSecrets, Watch } from "../download/http-client.ts";
import { type RdapBootstrap, serviceFor } from "../formats/rdap-bootstrap.ts";
import { type HolderReference, type NetworkRecord, registryNamed } from "../formats/record.ts";
import { countryCode } from "../formats/rpsl-values.ts";
import { maxTextLength } from "../formats/text-decoding.ts";

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
  if (status === 429)
    return { type: "asked to wait", url, seconds: retryAfterSeconds(answer.headers["retry-after"], now) };
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
    country,
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

// The "ip network" object of an RDAP answer (RFC 9083 section 5.4), as far as we use it. Strict in what makes it
// a network (class and range), lenient in the rest: a member of a wrong type counts as absent.

interface RdapHolder {
  readonly handle: string | null;
  readonly name: string | null;
}

interface RdapNetwork {
  readonly range: IpRange;
  readonly handle: string | null;
  readonly parentHandle: string | null;
  /** The registry's name for the range; may be empty. */
  readonly name: string;
  /** The kind of registration, in the registry's own words: `ALLOCATED PA`, `DIRECT ALLOCATION` … */
  readonly type: string | null;
  /** Upper-case alpha-2, or null. */
  readonly country: string | null;
  readonly status: readonly string[];
  /** Who it is registered to, or null where no registrant is an organisation. */
  readonly holder: RdapHolder | null;
  /** Every registrant, in the order of the answer: maintainers too. */
  readonly registrants: readonly RdapHolder[];
  /** RFC 3339, as stated; null where it is not. */
  readonly lastChanged: string | null;
  /** The WHOIS server of the same registry, or null. */
  readonly port43: string | null;
}

const text = z.string().max(1000).nullable().catch(null).default(null);

const list = <Item extends z.ZodType>(item: Item) =>
  z
    .array(z.unknown())
    .max(1000)
    .catch([])
    .default([])
    .transform((items) => items.flatMap((one) => item.safeParse(one).data ?? []));

const entitySchema = z.object({ handle: text, roles: list(z.string().max(100)), vcardArray: z.unknown() });
const eventSchema = z.object({ eventAction: z.string(), eventDate: z.string().max(40) });

const networkSchema = z.object({
  objectClassName: z.literal("ip network"),
  startAddress: z.string().max(60),
  endAddress: z.string().max(60),
  handle: text,
  parentHandle: text,
  name: text,
  type: text,
  country: text,
  status: list(z.string().max(100)),
  entities: list(entitySchema),
  events: list(eventSchema),
  port43: text,
});

/** The network in an answer, or in words why there is none. */
function readNetwork(value: unknown): RdapNetwork | string {
  const checked = networkSchema.safeParse(value);
  if (!checked.success) {
    const issue = checked.error.issues[0]!;
    return `the answer is no "ip network": ${issue.path.join(".") || "it"}: ${issue.message}`;
  }
  const { startAddress, endAddress, name, country, entities, events, ...rest } = checked.data;
  const range = rangeOf(startAddress, endAddress);
  if (range === null) return `the answer's range is none: ${startAddress} - ${endAddress}`;
  const { objectClassName: _class, ...plain } = rest;
  return {
    ...plain,
    range,
    name: name ?? "",
    country: countryCode(country ?? null),
    ...holdersAmong(entities),
    lastChanged: events.find(({ eventAction }) => eventAction === "last changed")?.eventDate ?? null,
  };
}

function rangeOf(start: string, end: string): IpRange | null {
  // Some servers append a prefix length.
  const [first, last] = [start, end].map((address) => parseAddress(address.replace(/\/\d{1,3}$/, "").trim()));
  return first && last ? rangeBetween(first, last) : null;
}

/**
 * RIPE lists the maintainers of a range as registrants besides its organisation: of several, an entity whose card
 * says "org" goes first, and one that identifies no company (subnets/holder-name) is no holder.
 */
function holdersAmong(entities: readonly z.infer<typeof entitySchema>[]) {
  const found = entities
    .filter(({ roles }) => roles.some((role) => role.toLowerCase() === "registrant"))
    .map(({ handle, vcardArray }) => {
      const { kind, name, organisation } = namesInCard(vcardArray);
      return { isOrganisation: kind === "org", holder: { handle, name: organisation ?? name } };
    });
  const companies = found.filter(({ holder }) => isCompany(holder));
  const best = companies.find(({ isOrganisation }) => isOrganisation) ?? companies[0];
  return { holder: best?.holder ?? null, registrants: found.map(({ holder }) => holder) };
}

/** Whether a handle or name identifies anybody does not depend on the registry: any will do. */
function isCompany(holder: RdapHolder): boolean {
  if (holder.handle !== null) return holderOf({ registry: "iana", handle: holder.handle }) !== null;
  return holderOf({ registry: "iana", name: holder.name }) !== null;
}

/**
 * Names out of a jCard (RFC 7095), the address card of RDAP's entities: `["vcard", [[name, parameters, type,
 * value…]…]]`. Lenient: whatever is not of this shape is passed over.
 */
interface CardNames {
  /** `individual`, `org`, `group` …; null where the card does not say. */
  readonly kind: string | null;
  /** The formatted name (`fn`), or null. */
  readonly name: string | null;
  /** The organisation (`org`), its units after it; or null. */
  readonly organisation: string | null;
}

const maxProperties = 1000;
const maxRemarkLength = 500;

function namesInCard(card: unknown): CardNames {
  const properties = Array.isArray(card) && Array.isArray(card[1]) ? card[1].slice(0, maxProperties) : [];
  return {
    kind: textOf(properties, "kind")?.toLowerCase() ?? null,
    name: textOf(properties, "fn"),
    organisation: textOf(properties, "org"),
  };
}

/** The first value of that name that is not empty; a structured value's parts are joined by commas. */
function textOf(properties: readonly unknown[], name: string): string | null {
  for (const property of properties) {
    if (!Array.isArray(property) || String(property[0]).toLowerCase() !== name) continue;
    const parts = [property[3]].flat().filter((part) => typeof part === "string");
    const text = parts.join(", ").replace(/\s+/g, " ").trim().slice(0, maxRemarkLength);
    if (text !== "") return text;
  }
  return null;
}
