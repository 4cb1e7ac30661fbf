/**
 * Answers who crawls a URL, host, address, range, organisation, country or crawler, and why or why not (design section 4d),
 * from bounded reads. An unknown host is resolved by DNS, to say who would crawl it.
 */

import { countryCode } from "#core/country-names";
import { note, type Standing } from "#core/explanation";
import type { UrlHash } from "#core/ids";
import { formatAddress, parseAddress, unmapAddress } from "#core/ip/address";
import { firstAddress, formatRange, isUnary, lastAddress, parseRange } from "#core/ip/range";
import { specialPurposeOf, specialPurposeOfRange } from "#core/ip/special-purpose";
import { withoutUser } from "#core/ip/url-host";
import { hostHashOf, type UrlKey, urlKeyOf } from "#core/url-key";
import { composed } from "#protocol/composed";
import type { ForeignOwner } from "../../crawl/federation/foreign-owner.ts";
import type { LeavingChannel } from "../../crawl/frontier/channel.ts";
import type { HostReport, UrlReport } from "../../crawl/frontier/frontier-reports-api.ts";
import type { OrganisationReport } from "../../place/subnets/subnets-api.ts";
import { noWishes } from "../../run/opt-outs/opt-out.ts";
import { orderReport, standingOf } from "./explanation.ts";
import { emptyPlace, type Place, placeOf, type WhoPorts } from "./place.ts";
import type { CrawlerReport, RollUp, TakenFor, WhoAnswer } from "./who-api.ts";

const subnetsShown = 100;
const nearMatchesShown = 8;

export async function answerWho(text: string, ports: WhoPorts, now: Date): Promise<WhoAnswer> {
  const answer = await answerTo(readQuestion(text), ports, now);
  return { ...answer, at: now.toISOString() };
}

/** `hostName` must be spelled as in the frontier. */
export async function answerHost(hostName: string, ports: WhoPorts, now: Date): Promise<WhoAnswer> {
  const host = await ports.reads.hostReport(hostHashOf(hostName), now);
  const takenFor = { type: "host", value: hostName } as const;
  const answer = await answerHosted({ takenFor, hostName, url: null, host, rejection: null }, ports, now);
  return { ...answer, at: now.toISOString() };
}

async function answerTo(question: Question, ports: WhoPorts, now: Date): Promise<Answer> {
  switch (question.type) {
    case "unreadable":
      return answerUnreadable(question.text, question.reason, ports);
    case "url":
      return answerUrl(question, ports, now);
    case "address":
      return answerAddress(question.text, ports, now);
    case "range":
      return answerRange(question, ports, now);
    case "name":
      return answerName(question, ports, now);
  }
}

async function answerUnreadable(text: string, reason: string, ports: WhoPorts): Promise<Answer> {
  const rejection = text === "" ? null : await ports.reads.rejectionOf(text.slice(0, 500));
  const words =
    rejection === null
      ? `This cannot be looked up: ${reason}.`
      : `It was submitted and refused: ${rejection}.`;
  const code = rejection === null ? "unreadable" : "url-rejected";
  return {
    ...emptyAnswer(text, { type: rejection === null ? "unknown" : "url", value: text }),
    found: rejection !== null,
    standing: [{ code, stops: true, words }],
  };
}

async function answerName(
  question: Extract<Question, { type: "name" }>,
  ports: WhoPorts,
  now: Date,
): Promise<Answer> {
  if (question.country?.isCertain === true)
    return answerCountry(question.country.code, question.text, { ports, now });
  const crawler = await ports.reads.crawlerNamed(question.text);
  if (crawler) return answerCrawler(crawler, ports, now);
  const organisation = await ports.reads.organisationNamed(question.text, subnetsShown);
  if (organisation) return answerOrganisation(question.text, organisation, { ports, now });
  if (question.country !== null) return answerCountry(question.country.code, question.text, { ports, now });
  const single = question.host ?? question.text.toLowerCase();
  const host = await ports.reads.hostReport(hostHashOf(single), now);
  if (host === null && question.host === null) return answerUnknown(question.text, ports);
  const takenFor = { type: "host", value: single } as const;
  const answer = await answerHosted(
    { takenFor, hostName: single, url: null, host, rejection: null },
    ports,
    now,
  );
  return host === null
    ? { ...answer, nearMatches: await ports.reads.hostsLike(single, nearMatchesShown) }
    : answer;
}

async function answerAddress(text: string, ports: WhoPorts, now: Date): Promise<Answer> {
  const place = await placeOf({ first: text, last: text }, ports);
  const wishes = await ports.reads.wishesOf(null, [text]);
  const address = parseAddress(text);
  const specialPurpose = address && specialPurposeOf(address);
  return {
    ...emptyAnswer(text, { type: "address", value: text }),
    ...shownPlace(place),
    found: place.chain.length > 0,
    addresses: [text],
    addressesFrom: "question",
    ...wishes,
    standing: standingOf(
      { ...placeFacts, wishes, asked: "address", addresses: [text], specialPurpose, ...place },
      now,
    ),
  };
}

async function answerRange(
  question: Extract<Question, { type: "range" }>,
  ports: WhoPorts,
  now: Date,
): Promise<Answer> {
  const [place, inside, rollUp] = await Promise.all([
    placeOf(question, ports),
    ports.reads.subnetsInside(question, subnetsShown),
    ports.reads.rollUp({ type: "range", first: question.first, last: question.last }, now),
  ]);
  const range = parseRange(question.text);
  const specialPurpose = range && specialPurposeOfRange(range);
  const standing = standingOf(
    { ...placeFacts, asked: "range", addresses: [], specialPurpose, ...place },
    now,
  );
  return {
    ...emptyAnswer(question.text, { type: "range", value: question.text }),
    ...shownPlace(place),
    found: place.chain.length > 0 || inside.subnets.length > 0,
    inside,
    rollUp,
    standing: [...standing.filter((line) => !isOfParts(line, rollUp)), ...uncountedLines(rollUp)],
  };
}

/** Whether the range waits but its subnets are crawled, so that waiting is irrelevant. */
function isOfParts({ code }: Standing, rollUp: RollUp | null): boolean {
  return code === "waits-for-round" && rollUp !== null && rollUp.byCrawler.length > 0;
}

/** Says that counting stopped at the page's time limit. */
function uncountedLines(rollUp: RollUp | null): Standing[] {
  if (rollUp !== null) return [];
  const words =
    "Its totals were not counted, because that exceeds a page's time limit. The explorer counts with a filter.";
  return [note("too-large-to-count", words)];
}

async function answerCrawler(crawler: CrawlerReport, ports: WhoPorts, now: Date): Promise<Answer> {
  const [inside, place] = await Promise.all([
    ports.reads.subnetsOfCrawler(crawler.crawlerId, subnetsShown),
    crawler.address === null ? emptyPlace : placeOf({ first: crawler.address, last: crawler.address }, ports),
  ]);
  const facts = { ...placeFacts, asked: "crawler", addresses: [], specialPurpose: null } as const;
  return {
    ...emptyAnswer(crawler.name, { type: "crawler", value: crawler.name }),
    found: true,
    addresses: crawler.address === null ? [] : [crawler.address],
    addressesFrom: crawler.address === null ? null : "frontier",
    chain: place.chain,
    crawler,
    inside,
    standing: standingOf({ ...facts, ...emptyPlace, crawler }, now),
  };
}

interface Asking {
  readonly ports: WhoPorts;
  readonly now: Date;
}

async function answerOrganisation(
  question: string,
  organisation: OrganisationReport,
  { ports, now }: Asking,
): Promise<Answer> {
  const [near, rollUp] = await Promise.all([
    ports.reads.namesLike(organisation.name, nearMatchesShown),
    ports.reads.rollUp({ type: "holder", holderId: organisation.holderId }, now),
  ]);
  return {
    ...emptyAnswer(question, { type: "organisation", value: organisation.name }),
    found: true,
    organisation,
    rollUp,
    standing: uncountedLines(rollUp),
    nearMatches: near.filter(
      ({ name, handle }) => name !== organisation.name || handle !== organisation.handle,
    ),
  };
}

/** Goes by registration, wherever the servers are. */
async function answerCountry(code: string, question: string, { ports, now }: Asking): Promise<Answer> {
  const rollUp = await ports.reads.rollUp({ type: "country", code }, now);
  return {
    ...emptyAnswer(question, { type: "country", value: code }),
    found: true,
    rollUp,
    standing: uncountedLines(rollUp),
  };
}

async function answerUnknown(text: string, ports: WhoPorts): Promise<Answer> {
  const asked = text.slice(0, 200);
  const [hosts, names] = await Promise.all([
    ports.reads.hostsLike(asked, nearMatchesShown),
    ports.reads.namesLike(asked, nearMatchesShown),
  ]);
  const nearMatches = [...hosts, ...names].slice(0, nearMatchesShown);
  return { ...emptyAnswer(text, { type: "unknown", value: text }), nearMatches };
}

const placeFacts = {
  wishes: noWishes,
  url: null,
  host: null,
  rejection: null,
  lookUpFailure: null,
  scope: null,
} as const;

// URLs and hosts, from the frontier, or from DNS when the frontier does not know them.

async function answerUrl(
  question: Extract<Question, { type: "url" }>,
  ports: WhoPorts,
  now: Date,
): Promise<Answer> {
  let key = question.keys[0];
  let url: UrlReport | null = null;
  for (const candidate of question.keys) {
    url = await ports.reads.urlReport(candidate, now);
    if (url !== null) {
      key = candidate;
      break;
    }
  }
  const host = await ports.reads.hostReport(key.hostHash, now);
  const rejection = url === null ? await ports.reads.rejectionOf(key.url.slice(0, 500)) : null;
  const leavingChannel = url === null ? await ports.reads.leavingChannel(key) : null;
  const takenFor = { type: "url", value: key.url } as const;
  const seen = { takenFor, url, host, rejection, leavingChannel };
  const answer = await answerHosted({ ...seen, hostName: key.host, urlHash: key.urlHash }, ports, now);
  return { ...answer, order: url === null ? null : await orderOf(key, ports, now) };
}

/** Addresses come from the frontier if it knows the host, otherwise from DNS. */
async function answerHosted(
  seen: {
    readonly takenFor: TakenFor;
    readonly hostName: string;
    readonly urlHash?: UrlHash;
    readonly url: UrlReport | null;
    readonly host: HostReport | null;
    readonly rejection: string | null;
    readonly leavingChannel?: LeavingChannel | null;
  },
  ports: WhoPorts,
  now: Date,
): Promise<Answer> {
  const known = seen.host !== null && seen.host.addresses.length > 0;
  const looked =
    known || seen.host?.state === "unresolvable" ? null : await ports.resolver.resolve(seen.hostName);
  const fromDns = looked !== null && "addresses" in looked ? looked.addresses : [];
  const addresses = known ? (seen.host?.addresses ?? []) : fromDns;
  const lookUpFailure = looked !== null && "failed" in looked ? looked.failed : null;
  const first = addresses[0];
  const place =
    first === undefined
      ? emptyPlace
      : await placeOf({ first, last: first, host: known ? hostHashOf(seen.hostName) : null }, ports);
  const address = first === undefined ? null : parseAddress(first);
  const asked = seen.takenFor.type === "url" ? seen.takenFor.value : null;
  const wishes = await ports.reads.wishesOf(seen.hostName, addresses, asked);
  const owner = await ownerOfHosted(seen, ports);
  const facts = {
    wishes,
    owner,
    asked: seen.takenFor.type,
    url: seen.url,
    host: seen.host,
    rejection: seen.rejection,
    leavingChannel: seen.leavingChannel ?? null,
    lookUpFailure,
    addresses,
    specialPurpose: address && specialPurposeOf(address),
    scope: ports.scope,
    domainSets: {
      host: seen.hostName,
      fleet: await ports.reads.fleetSets(hostHashOf(seen.hostName)),
      own: ports.domainSets ?? [],
    },
    ...place,
  };
  const isKnown =
    seen.url !== null ||
    seen.host !== null ||
    seen.rejection !== null ||
    wishes.optOut !== null ||
    owner !== null;
  return {
    ...emptyAnswer(seen.takenFor.value, seen.takenFor),
    ...shownPlace(owner === null ? place : { ...place, effective: null }),
    found: isKnown || place.chain.length > 0,
    addresses,
    addressesFrom: addresses.length === 0 ? null : known ? "frontier" : "dns",
    url: seen.url,
    host: seen.host,
    ...wishes,
    standing: standingOf(facts, now),
  };
}

/** A host in our frontier is ours, whoever owns it, until no lease holds it. Then it moves to its owner. */
async function ownerOfHosted(
  seen: { readonly hostName: string; readonly urlHash?: UrlHash; readonly host: HostReport | null },
  ports: WhoPorts,
): Promise<ForeignOwner | null> {
  if (seen.host !== null) return null;
  const { hostName: host, urlHash = null } = seen;
  return await ports.reads.ownerOf({ host, hostHash: hostHashOf(host), urlHash });
}

async function orderOf(key: UrlKey, { reads, order }: WhoPorts, now: Date): Promise<Answer["order"]> {
  if (order === undefined) return null;
  const placed = await reads.urlPlace(key, { strategy: order.name, now });
  return placed === null ? null : orderReport(placed, order);
}

/** An answer without its time. */
type Answer = Omit<WhoAnswer, "at">;

function shownPlace(place: Place): Omit<Place, "leaf" | "crawler" | "needsUnspokenIpv6"> {
  const { leaf: _, crawler: __, needsUnspokenIpv6: ___, ...shown } = place;
  return shown;
}

function emptyAnswer(question: string, takenFor: TakenFor): Answer {
  return {
    question,
    found: false,
    takenFor,
    addresses: [],
    addressesFrom: null,
    ...shownPlace(emptyPlace),
    url: null,
    order: null,
    host: null,
    inside: null,
    organisation: null,
    rollUp: null,
    crawler: null,
    ...noWishes,
    standing: [],
    nearMatches: [],
  };
}

// Parses a question: a URL, a host, an address, a range, or a name.

type Question =
  /** There are several keys if the scheme is missing. The first known one is used. */
  | { readonly type: "url"; readonly text: string; readonly keys: readonly [UrlKey, ...UrlKey[]] }
  | { readonly type: "address"; readonly text: string }
  | {
      readonly type: "range";
      readonly text: string;
      readonly first: string;
      readonly last: string;
    }
  /**
   * An organisation or crawler. `host` is set if the text may be a host name, and `country` if it may be a country
   * (certainly, for `country:DE`).
   */
  | {
      readonly type: "name";
      readonly text: string;
      readonly host: string | null;
      readonly country: { readonly code: string; readonly isCertain: boolean } | null;
    }
  | { readonly type: "unreadable"; readonly text: string; readonly reason: string };

/** Maximum length of a question: that of a URL in the frontier. */
export const maxQuestionLength = 2048;

const faultWords = {
  "not-a-url": "it cannot be parsed as a URL",
  "not-http": "only http and https are crawled",
  "too-long": "it is longer than 2048 characters",
  "no-host": "it names no host",
  "service-port": "its port is another service's than the web's",
} as const;

/** Never throws. For unreadable input it returns the reason. */
export function readQuestion(input: string): Question {
  const text = input
    .slice(0, maxQuestionLength + 1)
    .replace(/\p{Cc}/gu, " ")
    .trim();
  if (text === "") return unreadable(text, "nothing was asked");
  if (text.length > maxQuestionLength) return unreadable(text.slice(0, 100), faultWords["too-long"]);
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return urlQuestion(text, [text]);
  const located = addressQuestion(text) ?? rangeQuestion(text);
  if (located === null && addressForm.test(text))
    return unreadable(text, "it is no address and no range of addresses");
  return located ?? hostOrName(text);
}

/** Matches what looks like an address: digits and dots, or hexadecimal digits with two colons, with an optional prefix length. */
const addressForm = /^([\d.]+|[\da-f]*:[\da-f]*:[\da-f:.]*)(\/\d*)?$/i;

function addressQuestion(text: string): Question | null {
  const address = parseAddress(text.replace(/^\[(.*)\]$/, "$1"));
  return address && { type: "address", text: formatAddress(unmapAddress(address)) };
}

function rangeQuestion(text: string): Question | null {
  const range = parseRange(text);
  if (!range) return null;
  if (isUnary(range)) return { type: "address", text: formatAddress(firstAddress(range)) };
  return {
    type: "range",
    text: formatRange(range),
    first: formatAddress(firstAddress(range)),
    last: formatAddress(lastAddress(range)),
  };
}

const hostForm =
  /^(?=.{1,253}\.?$)([\p{L}\p{N}_]([\p{L}\p{N}_-]{0,61}[\p{L}\p{N}_])?\.)+[\p{L}\p{N}-]{2,63}\.?$/u;

function hostOrName(written: string): Question {
  const text = composed(written);
  const [, asked] = /^country:\s*(.+)$/i.exec(text) ?? [];
  if (asked !== undefined) {
    // Registries also use EU and AP.
    const code = countryCode(asked) ?? (/^[a-z]{2}$/i.test(asked) ? asked.toUpperCase() : null);
    if (code === null) return unreadable(text, "it names no country; countries are asked for as country:DE");
    return { type: "name", text, host: null, country: { code, isCertain: true } };
  }
  const code = countryCode(text);
  const country = code === null ? null : { code, isCertain: false };
  const [beforePath = ""] = text.split(/[/?#]/, 1);
  const hostPart = beforePath.replace(/:\d{1,5}$/, "");
  if (!hostForm.test(hostPart) && hostPart !== "localhost")
    return { type: "name", text, host: null, country };
  if (beforePath !== text || hostPart !== beforePath)
    return urlQuestion(text, [`https://${text}`, `http://${text}`]);
  const key = urlKeyOf(`http://${hostPart}/`);
  return { type: "name", text, host: typeof key === "string" ? null : key.host, country: null };
}

function urlQuestion(text: string, spellings: readonly string[]): Question {
  const keys = spellings.map(urlKeyOf);
  const [first, ...rest] = keys.filter((key): key is UrlKey => typeof key !== "string");
  if (first) return { type: "url", text: first.url, keys: [first, ...rest] };
  const fault = keys.find((key) => typeof key === "string");
  return unreadable(
    withoutUser(text),
    faultWords[(fault as keyof typeof faultWords | undefined) ?? "not-a-url"],
  );
}

function unreadable(text: string, reason: string): Question {
  return { type: "unreadable", text, reason };
}
