/**
 * The parent's side of an exchange: one transaction takes what the child sends, lets go of what the child has, and
 * numbers what waits for it. The child's row is locked throughout, so that messages of one child take turns.
 */
import type { Pool, PoolClient } from "pg";
import { nameOf } from "#core/url-key";
import { exchangeVersion, maxChain, mostLinks } from "#protocol/exchange";
import { inTransaction } from "../database/transaction.ts";
import { addHosts, addUrls, distinctUrls, lockHosts } from "../frontier/admission-writes.ts";
import type { LinkedUrl } from "../frontier/back-link-writes.ts";
import { addOutsideLinks } from "../results/host-writes.ts";
import {
  type Claims,
  claimBeyond,
  cycleFault,
  mostHops,
  overlapOf,
  ownerOf,
  parentId,
  readClaims,
} from "./claims.ts";
import type {
  ChildExchangeStore,
  GivenUrl,
  ParentExchangeStore,
  TakenUrls,
  TakingSettings,
} from "./exchange-ports.ts";
import { acknowledge, nextBatch, waitsFor } from "./exchange-queue-store.ts";
import {
  holdClaims,
  holdRelatives,
  type KnownRelatives,
  keepForeign,
  readRelatives,
} from "./foreign-url-store.ts";
import { lockPeer, noteExchange, noteFailure, ownId, type PeerRow } from "./related-store.ts";

type Message = Parameters<ChildExchangeStore["answer"]>[1];

export function createChildExchangeStore(pool: Pool): ChildExchangeStore {
  return {
    answer: async (childId, message, settings) =>
      await inTransaction(pool, async (client) => {
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
        const fresh = message.given.urls.filter(({ number }) => number > before);
        const relatives = (await holdRelatives(client))!;
        const { highest, faulty } = message.given;
        const placing = { ...settings, relatives };
        const placed = await placeGiven(client, fresh, placing);
        const received = fresh.length;
        await noteExchange(client, {
          peerId: childId,
          highest,
          received,
          told,
          faulty: highest > before ? faulty : 0,
          now: settings.now,
        });
        const urls = await nextBatch(client, childId);
        const { newHosts, ...counts } = placed;
        return {
          answer: { coordinatorId: chain[0]!, chain, linkId, received: Math.max(before, highest), urls },
          taken: { ...counts, repeated: message.given.urls.length - received },
          newHosts,
        };
      }),
  };
}

/** This coordinator and those above it. */
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

/** Why it cannot be a child, in words for whoever runs it; null: it can. */
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

/** Children that claim at the same time take turns. */
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
  return beyondFault(claims, relatives.own);
}

function beyondFault(claims: Claims, own: Claims | null): string | null {
  const beyond = own === null ? null : claimBeyond(claims, own);
  if (beyond === null) return null;
  return `it claims ${beyond}, which this coordinator does not own itself: its own parent would keep those URLs`;
}

/** What the child says of itself, kept; gives the link, which is a new one where the child comes for the first time. */
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

// The child's side of an exchange: what to send, and what the parent's answer comes to, each in one transaction.

type Answer = Parameters<ParentExchangeStore["take"]>[0];

export function createParentExchangeStore(pool: Pool): ParentExchangeStore {
  return {
    message: async (onlyUnderWay) =>
      await inTransaction(pool, async (client) => {
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
      }),

    take: async (answer, settings) =>
      await inTransaction(pool, async (client) => {
        const parent = await lockPeer(client, parentId);
        if (parent === null) return { refused: "the settings name no parent any more" };
        const cycle = await cycleIn(client, answer);
        if (cycle !== null) {
          await client.query("update related_coordinator set chain = '{}' where peer_id = $1", [parentId]);
          return { refused: cycle };
        }
        const before = await begin(client, parent, answer);
        const told = await acknowledge(client, parentId, answer.received, settings.now);
        const fresh = answer.given.urls.filter(({ number }) => number > before);
        const relatives = (await holdRelatives(client))!;
        const { highest, faulty } = answer.given;
        const placing = { ...settings, relatives };
        const { newHosts: _, ...counts } = await placeGiven(client, fresh, placing);
        const dropped = highest > before ? faulty : 0;
        await noteExchange(client, {
          peerId: parentId,
          highest,
          received: fresh.length,
          told,
          faulty: dropped,
          now: settings.now,
        });
        return {
          taken: { ...counts, repeated: answer.given.urls.length - fresh.length },
          told,
          waiting: answer.given.urls.length > 0 || (await waitsFor(client, parentId)),
        };
      }),

    fail: async (words, now) => await noteFailure(pool, parentId, { words, now }),
  };
}

/** Why the parent cannot be one, in words for whoever set it; null: it can. */
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

/** The highest number that counts as taken: of another link, none. */
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

// URLs that another coordinator sent find their place: in the frontier here, or in the queue for whose they are. Runs
// inside the transaction that commits their highest number, so that each counts once.

interface Placed extends Omit<TakenUrls, "repeated"> {
  readonly newHosts: number;
}

type Placing = TakingSettings & { readonly relatives: KnownRelatives };

const nothingPlaced: Placed = { admitted: 0, passedOn: 0, newHosts: 0 };

async function placeGiven(client: PoolClient, urls: readonly GivenUrl[], at: Placing): Promise<Placed> {
  if (urls.length === 0) return nothingPlaced;
  const own: GivenUrl[] = [];
  const foreign: (GivenUrl & { peerId: number })[] = [];
  for (const url of urls) {
    const owner = ownerOf(url.key.host, at.relatives);
    if (owner === "here" || url.hops >= mostHops) own.push(url);
    else foreign.push({ ...url, peerId: owner, hops: url.hops + 1 });
  }
  const admitted = await admitGiven(client, own, at);
  await keepForeign(client, foreign, at.now);
  return { ...admitted, passedOn: foreign.length };
}

/** As links of a result are admitted: the hosts' budgets hold, and new hosts come in where the scope lets them, or for seeds. */
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

/** Differences, each URL once; they are links from hosts of others, unless a coordinator sends what it handed over. */
function givenLinks(given: readonly Pick<GivenUrl, "key" | "links">[]): LinkedUrl[] {
  const sums = new Map<string, LinkedUrl>();
  for (const { key, links } of given) {
    const { hostHash, urlHash } = key;
    const sum = (sums.get(nameOf(key))?.links ?? 0) + links;
    sums.set(nameOf(key), { hostHash, urlHash, links: Math.max(-mostLinks, Math.min(mostLinks, sum)) });
  }
  return [...sums.values()].filter(({ links }) => links !== 0);
}
