/**
 * A web for fleets to disagree about: hosts whose pages change, rotate advertisements, show the time, differ by
 * country, by network or by visit, are cached at edges, or keep some crawlers out. Everything follows from the seed.
 */

import type { PageSketch } from "#coordinator/crawl/trust/page-sketch";
import { mix32, seededRandom } from "#core/random";

export interface Visitor {
  readonly crawler: number;
  readonly country: number;
  readonly region: number;
}

export interface SimulatedHost {
  readonly id: number;
  readonly pages: number;
  /** Share of its pages that differ by country, by region, or by visit (two variants). */
  readonly byCountry: number;
  readonly byRegion: number;
  readonly byVisit: number;
  /** Each network sees its own (an address in the text). */
  readonly personal: boolean;
  /** Links and bits that change with each visit. */
  readonly adLinks: number;
  readonly clockBits: number;
  /** Days between two changes of a page, at the mean. */
  readonly changeDays: number;
  /** Share of pages that change every few minutes instead. */
  readonly lively: number;
  /** Minutes that an edge may serve an older copy for. */
  readonly edgeMinutes: number;
  /** Share of crawlers that it answers with 403. */
  readonly keepsOut: number;
}

/** Shares of the kinds of hosts; those not named are plain. */
const mix = {
  ads: 0.2,
  clocks: 0.1,
  byCountry: 0.04,
  partlyByCountry: 0.01,
  byVisit: 0.02,
  partlyByVisit: 0.015,
  personal: 0.02,
  lively: 0.03,
  edges: 0.3,
  keepsOut: 0.02,
};

export function drawHost(id: number, random: () => number): SimulatedHost {
  const is = (share: number) => random() < share;
  const [country, partCountry, visit, partVisit] = [
    is(mix.byCountry),
    is(mix.partlyByCountry),
    is(mix.byVisit),
    is(mix.partlyByVisit),
  ];
  const place = country ? 1 : partCountry ? 0.2 : 0;
  const isRegional = random() < 0.4;
  return {
    id,
    pages: 3 + Math.floor(60 * random() ** 2),
    byCountry: isRegional ? 0 : place,
    byRegion: isRegional ? place : 0,
    byVisit: visit ? 1 : partVisit ? 0.15 : 0,
    personal: is(mix.personal),
    adLinks: is(mix.ads) ? 1 + Math.floor(8 * random()) : 0,
    clockBits: is(mix.clocks) ? 1 + Math.floor(3 * random()) : 0,
    changeDays: 3 * Math.exp(3 * random()),
    lively: is(mix.lively) ? 0.1 : 0,
    edgeMinutes: is(mix.edges) ? 1 + 15 * random() : 0,
    keepsOut: is(mix.keepsOut) ? 0.3 : 0,
  };
}

const minutesADay = 1440;
const livelyMinutes = 8;
/** Of fetches that fail, and of those that find a page missing that is there. */
const failing = 0.004;
const missing = 0.0002;

/** What a visitor gets to see at that minute. */
export function viewOf(
  host: SimulatedHost,
  page: number,
  visit: { readonly visitor: Visitor; readonly minute: number; readonly random: () => number },
): PageSketch {
  const { visitor, random } = visit;
  const draw = drawsOf(host.id, page);
  const chance = random();
  if (host.keepsOut > 0 && fraction(host.id, visitor.crawler, 99) < host.keepsOut) return empty("none");
  if (chance < failing) return empty("none");
  if (chance < failing + missing) return empty("missing");
  const cachedMinutes = host.edgeMinutes * fraction(host.id, visitor.region, Math.floor(visit.minute / 5));
  const version = versionAt(host, page, visit.minute - cachedMinutes);
  let seen = basePage(draw.seed, version);
  if (draw.place < host.byCountry) seen = variant(seen, mix32(draw.seed + 17 * (visitor.country + 1)));
  if (draw.place < host.byRegion) seen = variant(seen, mix32(draw.seed + 31 * (visitor.region + 1)));
  if (draw.visit < host.byVisit && random() < 0.5) seen = variant(seen, mix32(draw.seed + 7));
  if (host.personal) seen = flipped(seen, mix32(draw.seed + visitor.crawler * 101), 5);
  if (host.clockBits > 0) seen = flipped(seen, whole(random), Math.floor(random() * (host.clockBits + 1)));
  if (host.adLinks > 0) seen = withAds(seen, host.adLinks, random);
  return seen;
}

/** How often the page has changed by then. */
function versionAt(host: SimulatedHost, page: number, minute: number): number {
  const { lively, phase } = drawsOf(host.id, page);
  const isLively = lively < host.lively;
  const every = isLively ? livelyMinutes : host.changeDays * minutesADay * (0.3 + 2 * phase);
  return Math.floor(minute / every + phase);
}

function drawsOf(host: number, page: number) {
  const seed = mix32(host * 7919 + page);
  const random = seededRandom(seed);
  return { seed, place: random(), visit: random(), lively: random(), phase: random() };
}

/** Of the page's own text and links; each version changes a part of them. */
function basePage(seed: number, version: number): PageSketch {
  const random = seededRandom(seed);
  const links = Array.from({ length: 5 + Math.floor(40 * random()) }, () => whole(random));
  const page = sketch({
    high: whole(random),
    low: whole(random),
    titleHash: whole(random),
    links,
  });
  return version === 0 ? page : changed(page, mix32(seed + version * 65_537));
}

/** As an editor changes a page: some of the text, a link or two, seldom the title. */
function changed(page: PageSketch, seed: number): PageSketch {
  const random = seededRandom(seed);
  const bits = flipped(page, whole(random), 2 + Math.floor(8 * random()));
  const links = random() < 0.5 ? withLinks(bits, [whole(random)]) : bits;
  return random() < 0.1 ? { ...links, titleHash: whole(random) } : links;
}

/** As in another language or test group. */
function variant(page: PageSketch, seed: number): PageSketch {
  const random = seededRandom(seed);
  const bits = flipped(page, whole(random), 8 + Math.floor(14 * random()));
  const links = withLinks(bits, [whole(random), whole(random), whole(random)]);
  return random() < 0.5 ? { ...links, titleHash: whole(random) } : links;
}

function withAds(page: PageSketch, ads: number, random: () => number): PageSketch {
  const links = Array.from({ length: Math.max(1, Math.round(ads * (0.5 + random()))) }, () => whole(random));
  return withLinks(flipped(page, whole(random), Math.floor(4 * random())), links);
}

export function withLinks(page: PageSketch, more: readonly number[]): PageSketch {
  const links = [...new Set([...page.links, ...more])].sort((a, b) => a - b);
  return { ...page, links, linkCount: links.length };
}

/** So many of the simhash's bits turned over, by the seed. */
function flipped(page: PageSketch, seed: number, bits: number): PageSketch {
  let value = BigInt(`0x${page.simhash ?? "0"}`);
  const random = seededRandom(seed);
  for (let turned = 0; turned < bits; turned += 1) value ^= 1n << BigInt(Math.floor(64 * random()));
  return { ...page, simhash: value.toString(16).padStart(16, "0") };
}

function sketch(of: { high: number; low: number; titleHash: number; links: readonly number[] }): PageSketch {
  const links = [...new Set(of.links)].sort((a, b) => a - b);
  const simhash = `${of.high.toString(16).padStart(8, "0")}${of.low.toString(16).padStart(8, "0")}`;
  return { kind: "page", digest: null, simhash, titleHash: of.titleHash, links, linkCount: links.length };
}

export const empty = (kind: "none" | "missing"): PageSketch => ({
  kind,
  digest: null,
  simhash: null,
  titleHash: null,
  links: [],
  linkCount: 0,
});

export const whole = (random: () => number): number => Math.floor(random() * 0x1_0000_0000);

const fraction = (a: number, b: number, c: number): number =>
  mix32(a * 31 + mix32(b * 977 + mix32(c))) / 0x1_0000_0000;
