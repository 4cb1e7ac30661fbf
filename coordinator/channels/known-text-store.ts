/**
 * Texts that are known: which digests go with a lease, and the text of a page whose crawler left it out because its
 * digest was among them. What a crawler left out and is not there (a mistaken digest, a page that went meanwhile) is no
 * page: the URL is fetched again in a minute, like after any fault of ours, and against another set within the hour.
 */
import type { PoolClient } from "pg";
import { hostHashOf } from "#core/url-key";
import { packKnownDigests } from "#protocol/known-digests";
import type { Lease } from "#protocol/lease";
import type { PageExtract } from "#protocol/result";
import { columnsOf, prepared } from "../database/transaction.ts";
import type { CountedResult } from "../results/accepted-result.ts";
import { channelHolds } from "./channel.ts";

interface KnownChannel {
  readonly hostHash: string;
  readonly directories: readonly string[];
  readonly digests: readonly string[];
  readonly turn: number;
  readonly duplicateShare: number;
}

/** The leases, with what is known of their channels where that saves bytes. */
export async function withKnownTexts(client: PoolClient, leases: readonly Lease[]): Promise<Lease[]> {
  const hosts = leases.filter(({ urls }) => urls.some(isNew)).map(({ host }) => hostHashOf(host));
  if (hosts.length === 0) return [...leases];
  const { rows } = await prepared<KnownChannel>(
    client,
    `select host_hash as "hostHash", directories, known_digests as digests, known_turn as turn,
       duplicate_share as "duplicateShare"
     from channel
     where host_hash = any ($1::bigint[]) and duplicate_share > 0 and known_digests <> '{}'`,
    [hosts],
  );
  if (rows.length === 0) return [...leases];
  return leases.map((lease) => withSet(lease, rows));
}

type LeasedUrl = Lease["urls"][number];

const isNew = ({ digest }: LeasedUrl) => digest === undefined;

/** Of several channels the first that pays: a lease has one set. */
function withSet(lease: Lease, channels: readonly KnownChannel[]): Lease {
  const hostHash = hostHashOf(lease.host);
  for (const channel of channels) {
    if (channel.hostHash !== hostHash) continue;
    const newUrls = lease.urls.filter((one) => isNew(one) && channelHolds(channel, one.url)).length;
    if (newUrls === 0) continue;
    const set = packKnownDigests(channel.digests, channel.turn);
    const { duplicateShare } = channel;
    if (knownTextsPay({ setBytes: set.length, newUrls, duplicateShare }))
      return { ...lease, known: set.toString("base64") };
  }
  return lease;
}

interface KnownText extends Pick<PageExtract, "title" | "description" | "excerpt" | "headings" | "lexemes"> {
  readonly ordinal: number;
  readonly structured: NonNullable<PageExtract["structured"]> | null;
}

/** The results, with the texts that their crawlers left out. */
export async function withTexts(
  client: PoolClient,
  counted: readonly CountedResult[],
): Promise<readonly CountedResult[]> {
  const without = counted.filter(({ result }) => result.page?.textKnown === true);
  if (without.length === 0) return counted;
  const texts = await textsOf(client, without);
  const place = new Map(without.map((one, index) => [one, index]));
  return counted.map((one) => {
    const index = place.get(one);
    return index === undefined ? one : withText(one, texts.get(index));
  });
}

/** By place among those that were asked for. The whole digest, the text's simhash and how it is stemmed must be the same. */
async function textsOf(
  client: PoolClient,
  without: readonly CountedResult[],
): Promise<ReadonlyMap<number, KnownText>> {
  const wanted = without.map(({ key, result }) => ({ hostHash: key.hostHash, ...result.page! }));
  const { rows } = await client.query<KnownText>(
    `select given.ordinal::int - 1 as ordinal, known.*
     from unnest($1::bigint[], $2::text[], $3::text[], $4::text[]) with ordinality
       as given (host_hash, digest, simhash, text_search_config, ordinal)
     cross join lateral (
       select p.title, p.description, p.excerpt, p.headings, p.structured, p.lexemes::text as lexemes
       from page p
       where p.host_hash = given.host_hash and p.digest = given.digest and p.simhash = given.simhash
         and p.text_search_config = given.text_search_config and not p.noindex
       limit 1
     ) known`,
    columnsOf(wanted, ["hostHash", "digest", "simhash", "textSearchConfig"]),
  );
  return new Map(rows.map((row) => [row.ordinal, row]));
}

function withText(counted: CountedResult, text: KnownText | undefined): CountedResult {
  const { result } = counted;
  if (result.page === null) return counted;
  if (text === undefined) return { ...counted, admit: [], links: [], result: { ...result, ...notKnown } };
  const { ordinal: _, structured, ...known } = text;
  const { textKnown: __, ...page } = result.page;
  const whole = { ...page, ...known, ...(structured === null ? {} : { structured }) };
  return { ...counted, result: { ...result, page: whole } };
}

const notKnown = {
  outcome: {
    type: "failed",
    blame: "us",
    code: "text-not-known",
    reason: "its text was taken to be known and is not; it is fetched in full next time",
  },
  etag: null,
  lastModified: null,
  page: null,
} as const;

// Whether telling a crawler what is known of a channel saves more than it costs.

/** What the text of a page takes on the wire, packed and deflated (test/bench/results/digests.md). */
const textBytes = 700;

interface KnownTexts {
  /** What the set takes on the wire. */
  readonly setBytes: number;
  /** URLs of the lease that were never read: the digest of the others goes with each of them. */
  readonly newUrls: number;
  /** Share of the channel's pages whose body another of its pages has, too. */
  readonly duplicateShare: number;
}

export function knownTextsPay({ setBytes, newUrls, duplicateShare }: KnownTexts): boolean {
  return setBytes < duplicateShare * newUrls * textBytes;
}
