/**
 * All messages from a migrating crawler to the coordinator. Those in the other direction are in coordinator-messages.ts. The
 * prefix names the sender. These schemas are the only definition: both ends validate with them and derive their types from
 * them. All sizes are bounded here, so that no other code has to check them.
 */
import { z } from "zod";
import { address, digest, instant, leaseId, listOf, milliseconds, words } from "./fields.ts";
import { helloIdentity, signature } from "./identity.ts";
import { crawlerMove } from "./move.ts";
import { fetchResultSchema } from "./result.ts";
import { crawlerSigningKey } from "./signing-key.ts";
import { partnerContact } from "./user-agent.ts";

/** Maximum number of leases in a hello, chosen so that it fits the size limit of a first message. */
export const maxHeldLeases = 2000;
/** Maximum number of denied networks, and of denied domains, in a hello. */
export const maxDeniedInHello = 500;
/** Maximum number of characters of those lists, which must fit a first message beside the leases. */
export const maxDeniedCharacters = 10_000;

/** Maximum number of domain sets in a hello, and of characters in one. */
export const maxDomainSetsInHello = 16;
export const maxDomainSetCharacters = 1000;

/** How a latency was measured. Values of different methods are never compared. */
export const probeMethods = ["head", "connect", "icmp"] as const;
export const probeMethod = z.enum(probeMethods);
export type ProbeMethod = z.infer<typeof probeMethod>;

/**
 * A probe's result. `measured` carries the smallest of `tries` round-trip times. A TCP connect answered by a reset is
 * `measured`, because the answer crossed the network. `not-allowed` means that the crawler's host forbids it. `address` is
 * what the crawler resolved the name to when it was asked to measure by name; older crawlers omit it. `lateMs` is how late
 * the crawler's machine may have noticed the answer, so that the round trip took between `rttMs - lateMs` and `rttMs`. It is
 * absent if there was no delay or none is known.
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
     * The target was not contacted. `held-back`: the crawler's own pace, limits, pause or schedule prevented it. `unreported`:
     * the crawler or its coordinator sent no report.
     */
    code: z.enum(["held-back", "unreported"]).optional().catch(undefined),
    address: address.optional(),
  }),
]);
export type ProbeOutcome = z.infer<typeof probeOutcome>;

/** How a `held-back` reason begins. Reports of crawlers of 0.2.0, which send no code, are recognised by it. */
export const heldBackWords = "held back by the crawler";

/** Whether the target was not contacted, as far as is known, so that the outcome says nothing about its distance or state. */
export function saysNothing(outcome: ProbeOutcome): boolean {
  if (outcome.type !== "failed") return false;
  return outcome.code !== undefined || outcome.reason.startsWith(heldBackWords);
}

/** Numbers separated by dots, optionally with a suffix: 1.4.0, 2.0.0-beta1. */
export const releaseVersion = z.string().regex(/^\d{1,6}(\.\d{1,6}){1,3}(-[0-9a-z.]{1,20})?$/);

export const crawlerHello = z.object({
  type: z.literal("crawler:hello"),
  protocolVersions: z.array(z.int().min(1).max(10_000)).min(1).max(8),
  name: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,62}$/),
  key: z.string().min(16).max(200),
  softwareVersion: z.string().max(40),
  /** Identifies the spool on the crawler's disk; sequence numbers count within it. */
  spoolId: z.uuid(),
  /**
   * Leases that this crawler still works on or holds results of. The coordinator reclaims its other leases at once, because
   * they were lost in a restart or on the way. Null means that there are too many to list, so the others expire.
   */
  heldLeases: listOf(leaseId, maxHeldLeases).nullable(),
  /** The public address that the partner states, if any. */
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
  /** The partner's limits, within which the coordinator plans. It cannot raise them. */
  limits: z.object({
    pagesPerDay: z.int().min(0).max(1_000_000_000),
    bytesPerDay: z.int().min(0).max(1e15),
    concurrentHosts: z.int().min(1).max(10_000),
  }),
  /**
   * Networks (address, a/prefix or first-last) and domains with everything below them that the partner excludes, as many as
   * fit. When asked to contact one of the rest, the crawler refuses (`not-allowed`). Crawlers of other versions omit the
   * field.
   */
  denies: z
    .object({
      networks: listOf(z.string().min(2).max(91), maxDeniedInHello),
      domains: listOf(z.string().min(1).max(253), maxDeniedInHello),
    })
    .optional(),
  /**
   * If present, the partner restricts this crawler to these domain sets, one per text: `.gr not blog.gr lang:el`. A crawler
   * with unreadable sets is refused.
   */
  domainSets: z.array(z.string().min(1).max(maxDomainSetCharacters)).max(maxDomainSetsInHello).optional(),
  /** The partner's contact, which the coordinator adds to the User-Agent in its welcome. */
  contact: partnerContact.optional(),
  /** If false, its address is kept out of the list by which sites verify our requests. */
  listAddress: z.boolean().optional(),
  /** Absent for test crawlers without an identity. */
  identity: helloIdentity.optional(),
  /** Whether the crawler makes its own signing keys (signing-key.ts). If not, it signs with its identity, if at all. */
  signingKeys: z.boolean().optional(),
  /** The running release and its supervisor; absent if the crawler was started by hand. */
  release: z
    .object({ version: releaseVersion, digest, dockVersion: z.string().max(40), policy: words })
    .optional(),
  /** How the previous process ended, when that was abnormal: its last words. */
  lastEnd: z.object({ at: instant, reason: words }).optional().catch(undefined),
  /**
   * The crawler's time, as in heartbeats. When the clocks of many crawlers differ from the coordinator's in the same
   * direction, the coordinator's is wrong. Older crawlers omit it.
   */
  time: instant.optional().catch(undefined),
});

const crawlerHeartbeat = z.object({
  type: z.literal("crawler:heartbeat"),
  /**
   * Hosts in progress, results not yet acknowledged, and totals since the crawler's start: bytes fetched over the wire, bytes
   * shipped to the coordinator, and the decoded size of fetched bodies.
   */
  openHosts: z.int().min(0),
  spooledResults: z.int().min(0),
  pages: z.int().min(0),
  fetchedBytes: z.int().min(0),
  shippedBytes: z.int().min(0),
  bodyBytes: z.int().min(0).optional(),
  /** What blocks the crawler now, in words; empty when nothing does. */
  holdingBack: z.array(words).max(10),
  /** Why its disk accepts no results. Absent when it does, or from versions that do not report it. */
  diskFault: words.optional(),
  /** Free space of its folder; absent when the system or the version does not report it. */
  diskFreeBytes: z.int().min(0).optional(),
  time: instant.optional().catch(undefined),
});

/** Asks for work. The crawler can take this many more hosts. */
const crawlerReady = z.object({
  type: z.literal("crawler:ready"),
  freeHosts: z.int().min(1).max(10_000),
});

const crawlerProbeReport = z.object({
  type: z.literal("crawler:probe-report"),
  requestId: z.int().min(0),
  outcome: probeOutcome,
});

/** Round-trip times to the peers that the coordinator listed. */
const crawlerPeerRtts = z.object({
  type: z.literal("crawler:peer-rtts"),
  peers: listOf(z.object({ crawlerId: z.int().min(1), outcome: probeOutcome }), 1000),
});

/** The result for one URL, kept in the spool until the coordinator acknowledges `sequence`. */
export const crawlerResult = z.object({
  type: z.literal("crawler:result"),
  sequence: z.int().min(1),
  leaseId,
  result: fetchResultSchema,
});

/** Returns a lease. Its URLs without a result go back to the frontier. Sent after its results were acknowledged. */
const crawlerLeaseEnd = z.object({
  type: z.literal("crawler:lease-end"),
  leaseId,
  reason: words,
  /** How long the host must be left alone. If absent, no longer than its results say. */
  hostWaitMs: milliseconds.optional(),
});

/** Why a crawler ends a session properly. */
const goodbyeCodes = [
  /** Its process was asked to stop. */
  "stops",
  /** Its host removes it from the fleet. */
  "leaves",
  /** It returns as another crawler, or on another host (`crawlerMove`). */
  "starts-over",
  /** It returns at once with other settings. */
  "new-settings",
  /** Its host's byte limit forbids a connection. */
  "out-of-bytes",
  /** It has joined, but no release was started yet. */
  "joined",
  /** Its supervisor runs no release and waits for a release that it may run. */
  "awaits-release",
  /** As above, but because its machine refuses the release on offer. */
  "awaits-other-release",
  /** Its supervisor runs no release and waits for an invitation that pins the fleet's release keys. */
  "awaits-key",
  /** Its supervisor waits for its machine's administrator, who decides which releases run there. */
  "awaits-administrator",
] as const;

/** Ends the session properly. `forGood` means that the crawler will not return, so its subnets can be reassigned at once. */
const crawlerGoodbye = z.object({
  type: z.literal("crawler:goodbye"),
  reason: words,
  /** Earlier releases omit it. An unknown code of a later release is dropped, and only the words remain. */
  code: z.enum(goodbyeCodes).optional().catch(undefined),
  forGood: z.boolean().optional(),
});

/** Follows the results up to `last` and is signed with the crawler's key (`sealText`). */
const crawlerSeal = z.object({
  type: z.literal("crawler:seal"),
  /** The range of sequences since the previous seal. */
  first: z.int().min(1),
  last: z.int().min(1),
  signature,
});

/** The new key is on disk, so the previous one may be dropped. */
const crawlerKeyKept = z.object({ type: z.literal("crawler:key-kept") });

/** What became of an offered release on this machine. */
export const crawlerReleaseReport = z.object({
  type: z.literal("crawler:release-report"),
  version: releaseVersion,
  /**
   * refused    not genuine, expired, revoked, older than what runs, or not for this supervisor
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
