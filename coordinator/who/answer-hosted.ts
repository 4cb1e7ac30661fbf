/** Who crawls this URL or this host, and why (not)? What the frontier has of it, or DNS where it has nothing. */

import type { UrlHash } from "#core/ids";
import { parseAddress } from "#core/ip/address";
import { specialPurposeOf } from "#core/ip/special-purpose";
import { hostHashOf, type UrlKey } from "#core/url-key";
import type { ForeignOwner } from "../federation/owner-reads.ts";
import type { HostReport, UrlReport } from "../frontier/frontier-reports.ts";
import { type Answer, emptyAnswer, shownPlace } from "./answer-types.ts";
import { emptyPlace, placeOf } from "./place.ts";
import type { Question } from "./question.ts";
import type { TakenFor } from "./who-answer.ts";
import type { LeavingChannel } from "./who-channel.ts";
import { orderReport } from "./who-order.ts";
import type { WhoPorts } from "./who-reads.ts";
import { standingOf } from "./who-standing.ts";

export async function answerUrl(
  question: Extract<Question, { type: "url" }>,
  ports: WhoPorts,
  now: Date,
): Promise<Answer> {
  let key = question.keys[0];
  let url: UrlReport | null = null;
  for (const candidate of question.keys) {
    url = await ports.reads.urlReport(candidate);
    if (url !== null) {
      key = candidate;
      break;
    }
  }
  const host = await ports.reads.hostReport(key.hostHash);
  const rejection = url === null ? await ports.reads.rejectionOf(key.url.slice(0, 500)) : null;
  const leavingChannel = url === null ? await ports.reads.leavingChannel(key) : null;
  const takenFor = { type: "url", value: key.url } as const;
  const seen = { takenFor, url, host, rejection, leavingChannel };
  const answer = await answerHosted({ ...seen, hostName: key.host, urlHash: key.urlHash }, ports, now);
  return { ...answer, order: url === null ? null : await orderOf(key, ports, now) };
}

/** A URL or a host: where it lies comes from the frontier, or from DNS when the frontier does not know it. */
export async function answerHosted(
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
  const wishes = await ports.reads.wishesOf(seen.hostName, addresses);
  const owner = await ownerOfHosted(seen, ports, first ?? null);
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

/** A host that the frontier holds is still ours, whoever owns it: it goes to its owner when it is not leased. */
async function ownerOfHosted(
  seen: { readonly hostName: string; readonly urlHash?: UrlHash; readonly host: HostReport | null },
  ports: WhoPorts,
  address: string | null,
): Promise<ForeignOwner | null> {
  if (seen.host !== null) return null;
  const { hostName: host, urlHash = null } = seen;
  return await ports.reads.ownerOf({ host, hostHash: hostHashOf(host), urlHash, address });
}

async function orderOf(key: UrlKey, { reads, order }: WhoPorts, now: Date): Promise<Answer["order"]> {
  if (order === undefined) return null;
  const placed = await reads.urlPlace(key, { strategy: order.name, now });
  return placed === null ? null : orderReport(placed, order);
}
