/**
 * Runs an exchange in the database, in one transaction on the parent's side and two on the child's. Each takes what
 * the other side sends, drops what it has confirmed, and numbers what waits for it. The other coordinator's row is
 * locked throughout, so messages of one child are handled one at a time.
 */
import type { Pool, PoolClient } from "pg";
import { nameOf, type UrlKey } from "#core/url-key";
import {
  type ChildMessage,
  type ExchangedUrl,
  exchangeVersion,
  maxChain,
  mostLinks,
  type ParentAnswer,
} from "#protocol/exchange";
import { inTransaction } from "../../database/transaction.ts";
import { addHosts, addUrls, distinctUrls, lockHosts } from "../frontier/admission-writes.ts";
import type { LinkedUrl } from "../frontier/back-link-writes.ts";
import {
  claimBeyond,
  cycleFault,
  mostHops,
  overlapOf,
  ownerOf,
  parentId,
  readClaims,
} from "../frontier/claims.ts";
import { holdClaims, holdRelatives, keepForeign, readRelatives } from "../frontier/foreign-url-store.ts";
import type { CrawlScope } from "../frontier/frontier.ts";
import { addOutsideLinks } from "../results/host-writes.ts";
import { acknowledge, nextBatch, waitsFor } from "./exchange-queue-store.ts";
import { lockPeer, noteExchange, noteFailure, ownId, type PeerRow } from "./related-store.ts";

/** A URL that another coordinator sent. Its key is computed here. */
export interface GivenUrl extends Omit<ExchangedUrl, "url"> {
  readonly key: UrlKey;
}

export interface GivenUrls {
  readonly urls: readonly GivenUrl[];
  /** Highest number in the message, including those of URLs without a key. */
  readonly highest: number;
  /** How many URLs were dropped because they have no key. */
  readonly faulty: number;
}

export interface TakenUrls {
  /** How many URLs are new in this frontier. */
  readonly admitted: number;
  /** How many URLs were passed on to other coordinators. */
  readonly passedOn: number;
  /** How many URLs had been taken before. They count once. */
  readonly repeated: number;
}

export interface TakingSettings {
  readonly scope: CrawlScope;
  readonly mostNewHosts: number;
  readonly now: Date;
}

type Message = Omit<ChildMessage, "urls"> & { readonly given: GivenUrls };

export type ExchangeStore = ReturnType<typeof createExchangeStore>;

/** Each method runs in one transaction. */
export function createExchangeStore(pool: Pool) {
  return {
    answer: async (childId: number, message: Message, settings: TakingSettings) =>
      await answerMessage(pool, childId, message, settings),
    message: async (onlyUnderWay: boolean) => await messageToParent(pool, onlyUnderWay),
    take: async (answer: Answer, settings: TakingSettings) => await takeAnswer(pool, answer, settings),
    fail: async (words: string, now: Date) => await noteFailure(pool, parentId, { words, now }),
  };
}

/** The parent's side. If it refuses, it only records the reason. */
async function answerMessage(
  pool: Pool,
  childId: number,
  message: Message,
  settings: TakingSettings,
): Promise<
  | { readonly answer: ParentAnswer; readonly taken: TakenUrls; readonly newHosts: number }
  | { readonly refused: string }
> {
  return await inTransaction(pool, async (client) => {
    const chain = await chainHere(client);
    const child = await lockPeer(client, childId);
    if (child === null) return { refused: "this child was removed" };
    const refused = await faultOf(client, { child, message, chain });
    if (refused !== null) {
      await noteFailure(client, childId, { words: refused, now: settings.now });
      return { refused };
    }
    const linkId = await linkOf(client, child, message);
    const told =
      message.linkId === linkId ? await acknowledge(client, childId, message.received, settings.now) : 0;
    const before = Number(child.received_number);
    const { newHosts, ...taken } = await takeGiven(client, message.given, {
      ...settings,
      ...{ peerId: childId, before, told },
    });
    const urls = await nextBatch(client, childId);
    const received = Math.max(before, message.given.highest);
    return { answer: { coordinatorId: chain[0]!, chain, linkId, received, urls }, taken, newHosts };
  });
}

async function chainHere(client: PoolClient): Promise<string[]> {
  const { rows } = await client.query<{ chain: string[] }>(
    "select chain from related_coordinator where peer_id = $1",
    [parentId],
  );
  return [await ownId(client), ...(rows[0]?.chain ?? [])].slice(0, maxChain);
}

interface Judged {
  readonly child: PeerRow;
  readonly message: Message;
  readonly chain: readonly string[];
}

/** Returns why it cannot be a child, in words for its operator; otherwise null. */
async function faultOf(client: PoolClient, { child, message, chain }: Judged): Promise<string | null> {
  if (message.version !== exchangeVersion) {
    return `it uses version ${message.version} of the exchange, and this coordinator version ${exchangeVersion}: run the same software on both`;
  }
  const cycle = cycleFault(message.coordinatorId, chain);
  if (cycle !== null) return `a cycle of coordinators: ${cycle}; one of them must have no parent`;
  if (chain.length >= maxChain) return `there are ${maxChain - 1} coordinators above one another already`;
  if (child.coordinator_id !== null && child.coordinator_id !== message.coordinatorId) {
    return `the key of "${child.name}" belongs to another coordinator: invite this one under a name of its own`;
  }
  const taken = child.coordinator_id === null ? await nameOfId(client, message.coordinatorId) : null;
  if (taken !== null) return `this coordinator has joined as "${taken}" already`;
  if (child.claims.join("\n") === message.owns.join("\n")) return null;
  return await claimFault(client, child, message.owns);
}

async function nameOfId(client: PoolClient, coordinatorId: string): Promise<string | null> {
  const { rows } = await client.query<{ name: string }>(
    "select name from related_coordinator where coordinator_id = $1",
    [coordinatorId],
  );
  return rows[0]?.name ?? null;
}

/** Takes a lock, so that claims of several children are checked one after the other. */
async function claimFault(
  client: PoolClient,
  child: PeerRow,
  owns: readonly string[],
): Promise<string | null> {
  await client.query("select from coordinator_self for update");
  await holdClaims(client);
  const claims = readClaims(owns);
  if (typeof claims === "string") return `parent.owns: ${claims}`;
  const relatives = (await readRelatives(client))!;
  for (const other of relatives.children) {
    if (other.peerId === child.peer_id) continue;
    const both = overlapOf(claims, other.claims);
    if (both !== null) return `"${child.name}" and "${other.name}" would both own ${both}`;
  }
  const beyond = relatives.own && claimBeyond(claims, relatives.own);
  if (beyond === null) return null;
  return `it claims ${beyond}, which this coordinator does not own itself: its own parent would keep those URLs`;
}

/** Stores what the child says of itself. Returns its link, which is new at first contact. */
async function linkOf(client: PoolClient, child: PeerRow, message: Message): Promise<string> {
  const { rows } = await client.query<{ link_id: string }>(
    `update related_coordinator
     set coordinator_id = $2, claims = $3, link_id = coalesce(link_id, gen_random_uuid())
     where peer_id = $1
     returning link_id`,
    [child.peer_id, message.coordinatorId, message.owns],
  );
  return rows[0]!.link_id;
}

type Answer = Omit<ParentAnswer, "urls"> & { readonly given: GivenUrls };

/**
 * Returns the message for the parent, the same one until it is acknowledged; null if there is no parent.
 * `onlyUnderWay` numbers nothing new.
 */
async function messageToParent(pool: Pool, onlyUnderWay: boolean): Promise<ChildMessage | null> {
  return await inTransaction(pool, async (client) => {
    const parent = await lockPeer(client, parentId);
    if (parent === null) return null;
    return {
      version: exchangeVersion,
      coordinatorId: await ownId(client),
      owns: parent.claims,
      linkId: parent.link_id,
      received: Number(parent.received_number),
      urls: await nextBatch(client, parentId, onlyUnderWay ? 0 : undefined),
    };
  });
}

/** Takes the parent's answer unless the parent is unsuitable. */
async function takeAnswer(
  pool: Pool,
  answer: Answer,
  settings: TakingSettings,
): Promise<
  | { readonly taken: TakenUrls; readonly told: number; readonly waiting: boolean }
  | { readonly refused: string }
> {
  return await inTransaction(pool, async (client) => {
    const parent = await lockPeer(client, parentId);
    if (parent === null) return { refused: "the settings name no parent any more" };
    const cycle = await cycleIn(client, answer);
    if (cycle !== null) {
      await client.query("update related_coordinator set chain = '{}' where peer_id = $1", [parentId]);
      return { refused: cycle };
    }
    const before = await begin(client, parent, answer);
    const told = await acknowledge(client, parentId, answer.received, settings.now);
    const at = { ...settings, peerId: parentId, before, told };
    const { newHosts: _, ...taken } = await takeGiven(client, answer.given, at);
    const waiting = answer.given.urls.length > 0 || (await waitsFor(client, parentId));
    return { taken, told, waiting };
  });
}

/** Returns why it cannot be the parent, in words for its operator; otherwise null. */
async function cycleIn(client: PoolClient, { chain, coordinatorId }: Answer): Promise<string | null> {
  if (chain.length >= maxChain) return `there are ${maxChain} coordinators above one another; no more may be`;
  const id = await ownId(client);
  if (coordinatorId === id) return `a cycle of coordinators: the parent ${cycleFault(id, [id])}`;
  const { rows } = await client.query<{ name: string }>(
    "select name from related_coordinator where coordinator_id = $1 and peer_id <> $2",
    [coordinatorId, parentId],
  );
  if (rows[0])
    return `a cycle of coordinators: the parent is "${rows[0].name}", a child of this one; one of them must have no parent`;
  return chain.includes(id)
    ? "a cycle of coordinators: this one is above its parent; one of them must have no parent"
    : null;
}

/** Returns the highest number that counts as taken; 0 if the link has changed. */
async function begin(client: PoolClient, parent: PeerRow, answer: Answer): Promise<number> {
  const isSame = parent.link_id === answer.linkId;
  await client.query(
    `update related_coordinator
     set coordinator_id = $2, chain = $3, link_id = $4, received_number = case when $5 then received_number else 0 end
     where peer_id = $1`,
    [parentId, answer.coordinatorId, answer.chain, answer.linkId, isSame],
  );
  return isSame ? Number(parent.received_number) : 0;
}

// URLs from another coordinator go into the frontier here or into the queue for their owner, in the transaction that
// commits their highest number, so that each counts once.

interface Taking extends TakingSettings {
  readonly peerId: number;
  /** Highest number that was taken before. */
  readonly before: number;
  /** How many URLs the other side has acknowledged. */
  readonly told: number;
}

async function takeGiven(
  client: PoolClient,
  { urls, highest, faulty }: GivenUrls,
  at: Taking,
): Promise<TakenUrls & { readonly newHosts: number }> {
  const { peerId, before, told, now } = at;
  const fresh = urls.filter(({ number }) => number > before);
  const relatives = (await holdRelatives(client))!;
  const own: GivenUrl[] = [];
  const foreign: (GivenUrl & { peerId: number })[] = [];
  for (const url of fresh) {
    const owner = ownerOf(url.key.host, relatives);
    if (owner === "here" || url.hops >= mostHops) own.push(url);
    else foreign.push({ ...url, peerId: owner, hops: url.hops + 1 });
  }
  const admitted = own.length === 0 ? { admitted: 0, newHosts: 0 } : await admitGiven(client, own, at);
  await keepForeign(client, foreign, now);
  const received = fresh.length;
  await noteExchange(client, { peerId, highest, received, told, faulty: highest > before ? faulty : 0, now });
  return { ...admitted, passedOn: foreign.length, repeated: urls.length - received };
}

/** Admits them like links in results: within hosts' budgets, and on new hosts only as the scope allows or for seeds. */
export async function admitGiven(
  client: PoolClient,
  own: readonly Pick<GivenUrl, "key" | "depth" | "redirects" | "lists" | "links">[],
  at: TakingSettings,
): Promise<{ readonly admitted: number; readonly newHosts: number }> {
  const { scope, mostNewHosts, now } = at;
  const urls = distinctUrls(own, scope.maxDepth);
  const hosts = [...new Set(own.map(({ key }) => key.hostHash))];
  const welcome = urls.filter(({ depth }) => scope.admitNewHosts || depth === 0).map(({ key }) => key);
  const newHosts = welcome.length === 0 ? 0 : (await addHosts(client, welcome, now, mostNewHosts)).length;
  await lockHosts(client, hosts);
  const links = givenLinks(own);
  const limits = { pagesPerHost: scope.pagesPerHost, budgeted: true, links, now };
  const { newUrls: admitted } = await addUrls(client, urls, limits);
  await addOutsideLinks(client, links);
  return { admitted, newHosts };
}

/** Sums the changes per URL. They count as links from other hosts unless a coordinator hands the URL over. */
function givenLinks(given: readonly Pick<GivenUrl, "key" | "links">[]): LinkedUrl[] {
  const sums = new Map<string, LinkedUrl>();
  for (const { key, links } of given) {
    const { hostHash, urlHash } = key;
    const sum = (sums.get(nameOf(key))?.links ?? 0) + links;
    sums.set(nameOf(key), { hostHash, urlHash, links: Math.max(-mostLinks, Math.min(mostLinks, sum)) });
  }
  return [...sums.values()].filter(({ links }) => links !== 0);
}
