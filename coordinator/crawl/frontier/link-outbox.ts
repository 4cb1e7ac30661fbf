/**
 * Packs a batch's effects on other hosts (URLs it names there, links that came or went) into one row of an outbox.
 * Whoever applies the outbox sums many batches' effects per URL and applies each sum once, in host and URL order, like
 * IRLbot's DRUM (Lee and others 2008, section 4) with tables for its buckets.
 *
 *   byte 0        2
 *   then          count (32 bits) · host hashes · URL hashes (64 bits each) · links (32 bits, signed) ·
 *                 depths (16 bits; -1: the URL is only linked to, not to be admitted) · redirects · lists · (8 bits each)
 *                 lengths of the URLs' texts (16 bits) · the texts ·
 *                 which linking site named each (16 bits; 65,535: none) · the linking sites' names, a line for each
 */
import type { CrawlerId, HostHash, UrlHash } from "#core/ids";
import { nameOf } from "#core/url-key";
import type { AdmittedUrl } from "../batch/found-urls.ts";
import type { LinkedUrl } from "./back-link-writes.ts";

export interface LinkEffect extends LinkedUrl {
  /** The URL to admit if it is unknown. Null if only links changed. */
  readonly named: AdmittedUrl | null;
}

/** One effect per URL. `urls` and `links` must not repeat URLs. */
export function effectsOf(urls: readonly AdmittedUrl[], links: readonly LinkedUrl[]): LinkEffect[] {
  const effects = new Map<string, LinkEffect>();
  for (const named of urls) {
    const { hostHash, urlHash } = named.key;
    effects.set(nameOf(named.key), { hostHash, urlHash, links: 0, named });
  }
  for (const { hostHash, urlHash, links: count } of links) {
    const name = nameOf({ hostHash, urlHash });
    const known = effects.get(name);
    if (known !== undefined) known.links += count;
    else if (count !== 0) effects.set(name, { hostHash, urlHash, links: count, named: null });
  }
  return [...effects.values()];
}

export interface SummedEffects {
  readonly effects: readonly LinkEffect[];
  readonly namers: ReadonlyMap<HostHash, readonly Namer[]>;
}

/** A crawler whose result named a host, and the registrable domain of the page. Null if unknown or named by people. */
export interface Namer {
  readonly crawlerId: CrawlerId;
  readonly site: string | null;
}

/** Maximum per host, because admission is checked for each. */
const mostNamers = 8;

/** Sums effects per URL. If a URL is named several times, the shallowest naming counts, and of equally shallow ones the first. */
export function sumEffects(
  rows: readonly { readonly crawlerId: CrawlerId; readonly effects: readonly LinkEffect[] }[],
): SummedEffects {
  const sums = new Map<string, { effect: LinkEffect; order: readonly [bigint, bigint] }>();
  const namers = new Map<HostHash, Namer[]>();
  for (const { crawlerId, effects } of rows) {
    for (const effect of effects) {
      if (effect.named !== null)
        addNamer(namers, effect.hostHash, { crawlerId, site: effect.named.linkedFrom ?? null });
      const name = nameOf(effect);
      const known = sums.get(name);
      const order = known?.order ?? ([BigInt(effect.hostHash), BigInt(effect.urlHash)] as const);
      sums.set(name, { effect: known === undefined ? effect : both(known.effect, effect), order });
    }
  }
  const sorted = [...sums.values()].sort(
    ({ order: [hostA, urlA] }, { order: [hostB, urlB] }) => compare(hostA, hostB) || compare(urlA, urlB),
  );
  return { effects: sorted.map(({ effect }) => effect), namers };
}

function addNamer(namers: Map<HostHash, Namer[]>, host: HostHash, { crawlerId, site }: Namer): void {
  const known = namers.get(host);
  if (known === undefined) namers.set(host, [{ crawlerId, site }]);
  else if (
    known.length < mostNamers &&
    !known.some((one) => one.crawlerId === crawlerId && one.site === site)
  )
    known.push({ crawlerId, site });
}

function both(a: LinkEffect, b: LinkEffect): LinkEffect {
  const isDeeper = b.named === null || (a.named !== null && a.named.depth <= b.named.depth);
  return { ...a, links: a.links + b.links, named: isDeeper ? a.named : b.named };
}

const compare = (a: bigint, b: bigint): number => (a < b ? -1 : a > b ? 1 : 0);

/** Whether an effect comes after the position reached. True if that is null. */
export function isAfter(
  { hostHash, urlHash }: LinkEffect,
  reached: { readonly hostHash: HostHash; readonly urlHash: UrlHash } | null,
): boolean {
  if (reached === null) return true;
  return (
    (compare(BigInt(hostHash), BigInt(reached.hostHash)) ||
      compare(BigInt(urlHash), BigInt(reached.urlHash))) > 0
  );
}

const formatMark = 2;
const headBytes = 5;
const noSite = 0xffff;
const onlyLinked = -1;
const deepest = 32_767;

export function packEffects(effects: readonly LinkEffect[]): Buffer {
  const texts = effects.map(({ named }) => Buffer.from(named?.key.url ?? ""));
  const sites = new Map<string, number>();
  const at = columnsAt(effects.length);
  const packed = Buffer.alloc(at.texts);
  const namedBy = Buffer.alloc(2 * effects.length);
  packed.writeUInt8(formatMark, 0);
  packed.writeUInt32BE(effects.length, 1);
  for (const [index, { hostHash, urlHash, links, named }] of effects.entries()) {
    packed.writeBigInt64BE(BigInt(hostHash), at.hosts + 8 * index);
    packed.writeBigInt64BE(BigInt(urlHash), at.urls + 8 * index);
    packed.writeInt32BE(links, at.links + 4 * index);
    packed.writeInt16BE(named === null ? onlyLinked : Math.min(deepest, named.depth), at.depths + 2 * index);
    packed.writeUInt8(named?.redirects ?? 0, at.redirects + index);
    packed.writeUInt8(named?.lists ?? 0, at.lists + index);
    packed.writeUInt16BE(texts[index]!.length, at.lengths + 2 * index);
    const site = named?.linkedFrom;
    if (site !== undefined && !sites.has(site) && sites.size < noSite) sites.set(site, sites.size);
    namedBy.writeUInt16BE(sites.get(site ?? "") ?? noSite, 2 * index);
  }
  return Buffer.concat([packed, ...texts, namedBy, Buffer.from([...sites.keys()].join("\n"))]);
}

export function unpackEffects(packed: Buffer): LinkEffect[] {
  if (packed.length < headBytes || packed[0] !== formatMark)
    throw new RangeError(`a row of the link outbox begins with byte ${packed[0]}, not with ${formatMark}`);
  const count = packed.readUInt32BE(1);
  const at = columnsAt(count);
  if (at.texts > packed.length)
    throw new RangeError(`a row of the link outbox has ${packed.length} bytes, too few for ${count} URLs`);
  let textAt = at.texts;
  const effects = Array.from({ length: count }, (_, index): LinkEffect => {
    const hostHash = packed.readBigInt64BE(at.hosts + 8 * index).toString() as HostHash;
    const urlHash = packed.readBigInt64BE(at.urls + 8 * index).toString() as UrlHash;
    const links = packed.readInt32BE(at.links + 4 * index);
    const depth = packed.readInt16BE(at.depths + 2 * index);
    const textEnd = textAt + packed.readUInt16BE(at.lengths + 2 * index);
    const url = packed.toString("utf8", textAt, textEnd);
    textAt = textEnd;
    if (depth === onlyLinked) return { hostHash, urlHash, links, named: null };
    const [redirects, lists] = [packed[at.redirects + index]!, packed[at.lists + index]!];
    const key = { url, host: hostOf(url), hostHash, urlHash };
    return { hostHash, urlHash, links, named: { key, depth, redirects, lists } };
  });
  const sitesAt = textAt + 2 * count;
  if (sitesAt > packed.length)
    throw new RangeError(`a row of the link outbox has ${packed.length} bytes where ${sitesAt} are told`);
  const sites = packed.toString("utf8", sitesAt).split("\n");
  return effects.map((effect, index) => {
    const linkedFrom = sites[packed.readUInt16BE(textAt + 2 * index)];
    const { named } = effect;
    return named === null || linkedFrom === undefined
      ? effect
      : { ...effect, named: { ...named, linkedFrom } };
  });
}

function columnsAt(count: number) {
  const hosts = headBytes;
  const urls = hosts + 8 * count;
  const links = urls + 8 * count;
  const depths = links + 4 * count;
  const redirects = depths + 2 * count;
  const lists = redirects + count;
  const lengths = lists + count;
  return { hosts, urls, links, depths, redirects, lists, lengths, texts: lengths + 2 * count };
}

/** Expects a canonical URL (core/url-key), which has a path but neither user nor password. */
function hostOf(url: string): string {
  const start = url.indexOf("://") + 3;
  const authority = url.slice(start, url.indexOf("/", start));
  return authority.startsWith("[")
    ? authority.slice(1, authority.indexOf("]"))
    : authority.replace(/:\d*$/, "");
}
