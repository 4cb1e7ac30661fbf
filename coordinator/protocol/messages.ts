/**
 * Every message that a migrating crawler says to the coordinator; what the coordinator says is in
 * coordinator-messages.ts. The name says who speaks.
 * These schemas are the only definition: both ends validate what arrives against them, and the types
 * are derived from them. Sizes are bounded here, so that nothing behind the edge has to ask again.
 */
import { z } from "zod";
import { address, digest, instant, leaseId, listOf, milliseconds, words } from "./fields.ts";
import { helloIdentity, signature } from "./identity.ts";
import { crawlerMove } from "./move.ts";
import { fetchResultSchema } from "./result.ts";
import { crawlerSigningKey } from "./signing-key.ts";
import { partnerContact } from "./user-agent.ts";

/** Most leases that a hello lists: what fits the bound on a first message. */
export const maxHeldLeases = 2000;
/** Most networks, and most domains, that a hello lists as never to be touched. */
export const maxDeniedInHello = 500;
/** Most characters of that list together: beside the leases it must fit the bound on a first message. */
export const maxDeniedCharacters = 10_000;

/** Most domain sets that a hello states, and the longest of them. */
export const maxDomainSetsInHello = 16;
export const maxDomainSetCharacters = 1000;

/** How a latency was measured. Methods are never compared with each other. */
export const probeMethods = ["head", "connect", "icmp"] as const;
export const probeMethod = z.enum(probeMethods);
export type ProbeMethod = z.infer<typeof probeMethod>;

/**
 * A probe's result. `measured` carries the smallest of `tries` round-trip times. A TCP connect answered
 * by a reset is `measured`: the answer crossed the network. `not-allowed`: the host of the crawler forbids it.
 * `address`: what the name resolved to for the crawler, when it was asked to measure by name; crawlers that
 * know nothing of that leave it out. `lateMs`: by how much the crawler's machine may have been late to notice the
 * answer, so that the round trip took between `rttMs - lateMs` and `rttMs`; absent: it noticed at once, or does not say.
 */
export const probeOutcome = z.discriminatedUnion("type", [
  z.object({
    type: z.literal("measured"),
    method: probeMethod,
    rttMs: milliseconds,
    tries: z.int().min(1).max(20),
    lateMs: milliseconds.optional(),
    address: address.optional(),
  }),
  z.object({
    type: z.enum(["timed-out", "refused", "unreachable", "not-allowed", "failed"]),
    method: probeMethod,
    reason: words,
    /**
     * Nobody asked the target. `held-back`: the crawler's own pace, limits, pause or schedule kept it from that.
     * `unreported`: the crawler, or the coordinator that it is connected to, did not report.
     */
    code: z.enum(["held-back", "unreported"]).optional().catch(undefined),
    address: address.optional(),
  }),
]);
export type ProbeOutcome = z.infer<typeof probeOutcome>;

/** How the reason of what is `held-back` begins; crawlers of 0.2.0 send no code, and are known by it. */
export const heldBackWords = "held back by the crawler";

/** Nobody asked the target, as far as is known: the outcome says nothing of how far it is, or whether it answers. */
export function saysNothing(outcome: ProbeOutcome): boolean {
  if (outcome.type !== "failed") return false;
  return outcome.code !== undefined || outcome.reason.startsWith(heldBackWords);
}

/** Dots between numbers, and letters after a dash: 1.4.0, 2.0.0-beta1. */
export const releaseVersion = z.string().regex(/^\d{1,6}(\.\d{1,6}){1,3}(-[0-9a-z.]{1,20})?$/);

/* ---------------------------------------------------------------- crawler speaks */

export const crawlerHello = z.object({
  type: z.literal("crawler:hello"),
  protocolVersions: z.array(z.int().min(1).max(10_000)).min(1).max(8),
  name: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/),
  key: z.string().min(16).max(200),
  softwareVersion: z.string().max(40),
  /** Names this crawler's on-disk spool; sequence numbers count within it. */
  spoolId: z.uuid(),
  /**
   * Leases that this crawler still works on or holds results of; the coordinator takes all others of its
   * leases back at once (it was restarted, or they got lost on the way). Null: too many to list, so they
   * are left to run out.
   */
  heldLeases: listOf(leaseId, maxHeldLeases).nullable(),
  /** The address other hosts see this crawler under, when its partner states it. */
  publicAddress: address.nullable(),
  place: z
    .object({
      name: z.string().max(80),
      country: z
        .string()
        .regex(/^[A-Z]{2}$/)
        .nullable(),
      latitude: z.number().min(-90).max(90),
      longitude: z.number().min(-180).max(180),
    })
    .nullable(),
  capabilities: z.object({ probeMethods: z.array(probeMethod).max(3), ipv6: z.boolean() }),
  /** What the partner allows; the coordinator plans inside it and cannot raise it. */
  limits: z.object({
    pagesPerDay: z.int().min(0).max(1_000_000_000),
    bytesPerDay: z.int().min(0).max(1e15),
    concurrentHosts: z.int().min(1).max(10_000),
  }),
  /**
   * What the partner never lets this crawler touch, as much of it as fits: networks as an address, a/prefix or
   * first-last, and domains with everything below them. The crawler refuses the rest when it is asked
   * (`not-allowed`). Crawlers of another version leave this out.
   */
  denies: z
    .object({
      networks: listOf(z.string().min(2).max(91), maxDeniedInHello),
      domains: listOf(z.string().min(1).max(253), maxDeniedInHello),
    })
    .optional(),
  /**
   * The partner narrows what this crawler may be given to these domain sets, one a text: `.gr not blog.gr lang:el`.
   * Absent: it does not. A crawler whose sets cannot be read is refused.
   */
  domainSets: z.array(z.string().min(1).max(maxDomainSetCharacters)).max(maxDomainSetsInHello).optional(),
  /** Whom to reach at the partner: the coordinator adds it to the User-Agent that its welcome states. */
  contact: partnerContact.optional(),
  /** False: its address is not to be in the list by which sites verify that a request is ours. Absent: it may be. */
  listAddress: z.boolean().optional(),
  /** Absent: a crawler without an identity of its own (one for tests). */
  identity: helloIdentity.optional(),
  /** It makes signing keys of its own (signing-key.ts). Absent: it signs requests with its identity, if at all. */
  signingKeys: z.boolean().optional(),
  /** The release that runs and the dock that runs it; absent: neither, it was started by hand. */
  release: z
    .object({ version: releaseVersion, digest, dockVersion: z.string().max(40), policy: words })
    .optional(),
  /** How the process before this one ended, when that was not as it should be: its last words. */
  lastEnd: z.object({ at: instant, reason: words }).optional().catch(undefined),
  /** What time it is here, as in heartbeats: where many differ from the coordinator alike, its clock is wrong. Absent: an older one. */
  time: instant.optional().catch(undefined),
});

const crawlerHeartbeat = z.object({
  type: z.literal("crawler:heartbeat"),
  /**
   * Hosts being crawled, results not yet acknowledged, and totals since the crawler's start: bytes fetched over
   * the wire, bytes shipped to the coordinator, and below what the fetched bodies were when decoded.
   */
  openHosts: z.int().min(0),
  spooledResults: z.int().min(0),
  pages: z.int().min(0),
  fetchedBytes: z.int().min(0),
  shippedBytes: z.int().min(0),
  bodyBytes: z.int().min(0).optional(),
  /** What holds the crawler back right now, in words; empty when nothing does. */
  holdingBack: z.array(words).max(10),
  /** Why its disk takes no results; left out: it does, or its version does not say. */
  diskFault: words.optional(),
  /** Free where its folder lies; left out: its system, or its version, does not say. */
  diskFreeBytes: z.int().min(0).optional(),
  time: instant.optional().catch(undefined),
});

/** Asks for work: the crawler has room for so many more hosts. */
const crawlerReady = z.object({
  type: z.literal("crawler:ready"),
  freeHosts: z.int().min(1).max(10_000),
});

const crawlerProbeReport = z.object({
  type: z.literal("crawler:probe-report"),
  requestId: z.int().min(0),
  outcome: probeOutcome,
});

/** Round-trip times to other crawlers, measured on the coordinator's list of peers. */
const crawlerPeerRtts = z.object({
  type: z.literal("crawler:peer-rtts"),
  peers: listOf(z.object({ crawlerId: z.int().min(1), outcome: probeOutcome }), 1000),
});

/** One fetched (or not fetched) URL. Kept in the spool until the coordinator acknowledges `sequence`. */
export const crawlerResult = z.object({
  type: z.literal("crawler:result"),
  sequence: z.int().min(1),
  leaseId,
  result: fetchResultSchema,
});

/** Gives a lease back: every URL in it without a result returns to the frontier. Sent after its results were acknowledged. */
const crawlerLeaseEnd = z.object({
  type: z.literal("crawler:lease-end"),
  leaseId,
  reason: words,
  /** The host is to be left alone for so long; absent: no longer than its results have said. */
  hostWaitMs: milliseconds.optional(),
});

/** Why a crawler ends a session in order. */
export const goodbyeCodes = [
  /** Its process was asked to stop. */
  "stops",
  /** Its host takes it out of the fleet. */
  "leaves",
  /** It comes back as another crawler, or on another host (`crawlerMove`). */
  "starts-over",
  /** It comes back at once with other settings. */
  "new-settings",
  /** Its host's limit on bytes keeps it from being connected. */
  "out-of-bytes",
  /** It has joined, and no release was started yet. */
  "joined",
  /* Its supervisor runs no release, and waits: */
  "awaits-release",
  /** For one that it may run: what is offered is refused there. */
  "awaits-other-release",
  /** For an invitation that pins the keys of the fleet's releases. */
  "awaits-key",
  /** For the administrator of its machine, who decides which releases run there. */
  "awaits-administrator",
] as const;

/** The session ends in order. `forGood`: the crawler will not be back, so others may have its subnets at once. */
const crawlerGoodbye = z.object({
  type: z.literal("crawler:goodbye"),
  reason: words,
  /** Earlier releases send none, and later ones may send codes that are unknown here: then the words are all there is. */
  code: z.enum(goodbyeCodes).optional().catch(undefined),
  forGood: z.boolean().optional(),
});

/** After the results up to `last`: signed with the crawler's key (`sealText`). */
const crawlerSeal = z.object({
  type: z.literal("crawler:seal"),
  /** The results after the seal before it, as sequences. */
  first: z.int().min(1),
  last: z.int().min(1),
  signature,
});

/** The new key is on disk; the one before it may be forgotten. */
const crawlerKeyKept = z.object({ type: z.literal("crawler:key-kept") });

/** What became of a release that was offered, on this machine. */
export const crawlerReleaseReport = z.object({
  type: z.literal("crawler:release-report"),
  version: releaseVersion,
  /**
   * refused    not genuine, expired, revoked, older than what runs, or not for this dock
   * pinned     the partner stays with another release
   * delayed    the partner takes it later
   * running    it runs and is well
   * returned   it was not well, and the one before it runs again
   */
  state: z.enum(["refused", "pinned", "delayed", "running", "returned"]),
  reason: words,
});

export const crawlerMessage = z.discriminatedUnion("type", [
  crawlerHello,
  crawlerHeartbeat,
  crawlerReady,
  crawlerProbeReport,
  crawlerPeerRtts,
  crawlerResult,
  crawlerLeaseEnd,
  crawlerGoodbye,
  crawlerSeal,
  crawlerKeyKept,
  crawlerReleaseReport,
  crawlerMove,
  crawlerSigningKey,
]);
export type CrawlerMessage = z.infer<typeof crawlerMessage>;
export type Goodbye = Omit<z.infer<typeof crawlerGoodbye>, "type">;
export type CrawlerHello = z.infer<typeof crawlerHello>;
export type CrawlerHeartbeat = z.infer<typeof crawlerHeartbeat>;
