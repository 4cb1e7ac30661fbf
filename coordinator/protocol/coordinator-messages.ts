/**
 * What the coordinator sends to a migrating crawler. The rules are those of messages.ts, which holds the crawler's messages.
 */
import { z } from "zod";
import { address, coordinatorWords, digest, hostName, maxUrlLength, milliseconds } from "./fields.ts";
import { keyScope, keyScopes, signatureAgent, ticket } from "./identity.ts";
import { offeredLease } from "./lease.ts";
import { probeMethod, releaseVersion } from "./messages.ts";
import { coordinatorMove } from "./move.ts";
import { coordinatorRenewSigningKey, coordinatorSigningKey } from "./signing-key.ts";
import { userAgent } from "./user-agent.ts";

/** Maximum number of coordinator addresses that a crawler is sent and keeps. */
export const mostCoordinators = 16;

/** Malformed URLs are accepted here, because the crawler ignores every address that it may not connect to. */
const coordinatorUrls = z.array(z.string().min(1).max(1000)).max(mostCoordinators);

const coordinatorWelcome = z.object({
  type: z.literal("coordinator:welcome"),
  protocolVersion: z.int(),
  crawlerId: z.int().min(1),
  /** The highest committed sequence of this spool. The crawler drops everything up to it. */
  acknowledgedSequence: z.int().min(0),
  /** How many results may be sent without being acknowledged. */
  resultCredits: z.int().min(1).max(10_000),
  heartbeatSeconds: z.int().min(1).max(600),
  /** The crawler gets a message or a WebSocket ping at least this often. Default: as often as heartbeats. */
  pingSeconds: z.number().positive().max(600).optional(),
  /** When a crawler has been offline this long, its leases go to others, and it drops them itself. */
  departureSeconds: z.number().positive().max(86_400).optional(),
  /** The exact User-Agent of every request to a site. */
  userAgent,
  /** The crawler stores the ticket and presents it in the next hello. */
  ticket: ticket.optional(),
  /** The connection's source address as the coordinator sees it. */
  seenAddress: address.optional(),
  /** The coordinator's time, which shows the crawler whether its own clock is wrong. */
  time: z.iso.datetime().optional(),
  /** If present, requests by https are signed (RFC 9421, Web Bot Auth) and name this URL of the key set. */
  signatureAgent: signatureAgent.optional(),
  /** Whether requests are signed with a key that the crawler makes and announces (signing-key.ts), not with its identity. */
  signingKeys: z.boolean().optional(),
  /** The addresses of this fleet's coordinators, including this one; a crawler that loses its coordinator connects to another. */
  coordinators: coordinatorUrls.optional(),
});

/** Sent when the fleet's coordinators change. The list is like `coordinators` in the welcome. */
const coordinatorAddresses = z.object({
  type: z.literal("coordinator:addresses"),
  urls: coordinatorUrls,
});

/** Ends the session, with the reason and whether a retry makes sense. */
const coordinatorRefuse = z.object({
  type: z.literal("coordinator:refuse"),
  code: z.enum([
    "wrong-key",
    "wrong-version",
    "bad-message",
    "replaced",
    "revoked",
    "too-much",
    "shutting-down",
    /** A signature of the hello or of results is missing or wrong. */
    "bad-signature",
    /** Two machines use one identity, so one folder is a copy. */
    "copied-folder",
    /** The name moved to another host, or this host's identity has another name. */
    "moved",
    /** The coordinator failed (for example its database). The crawler is not at fault. */
    "internal-error",
    /** Too many crawlers connect at once, or the previous session has not ended. Crawlers of version 4 get `internal-error`. */
    "busy",
  ]),
  reason: coordinatorWords,
  retry: z.boolean(),
  /** When the crawler may retry at the earliest. If absent, the crawler decides. */
  retryAfterMs: milliseconds.optional(),
});

const coordinatorProbe = z.object({
  type: z.literal("coordinator:probe"),
  requestId: z.int().min(0),
  host: hostName,
  address,
  /** Asks the crawler to measure and report the address to which it resolves the host's name itself. */
  byName: z.boolean().optional(),
  port: z.int().min(1).max(65_535),
  secure: z.boolean(),
  method: probeMethod,
  tries: z.int().min(1).max(20),
  /** The limit for the whole measurement, including retries and fallbacks. */
  deadlineMs: z.int().min(1).max(60_000),
});

/**
 * Answers `crawler:ready` with at most the requested number of leases. Each is parsed (`lease`) when its work begins. If the
 * list is empty, the answer states why and when to ask again.
 */
const coordinatorTasks = z.object({
  type: z.literal("coordinator:tasks"),
  leases: z.array(offeredLease).max(1000),
  askAgainMs: milliseconds,
  reason: coordinatorWords,
});

/** Tells a crawler that got no work that some may be due now, so that it asks before the stated time. */
const coordinatorWake = z.object({ type: z.literal("coordinator:wake") });

const coordinatorAcknowledge = z.object({
  type: z.literal("coordinator:acknowledge"),
  sequence: z.int().min(0),
});

/** Backpressure with its reason: how many unacknowledged results are allowed from now on; 0 stops shipping. */
const coordinatorPace = z.object({
  type: z.literal("coordinator:pace"),
  resultCredits: z.int().min(0).max(10_000),
  reason: coordinatorWords,
});

/**
 * Tells the crawler to have fewer or more hosts in progress, because little or much work is due: one host per due slice, or
 * on `hurry-up` as many as its host's limits allow.
 */
const coordinatorWorkPace = z.object({
  type: z.literal("coordinator:work-pace"),
  pace: z.enum(["slow-down", "steady", "hurry-up"]),
  /** Host slices that are due for the crawler or leased to it. Counting stops once the decision is certain. */
  due: z.int().min(0).max(1_000_000_000),
  reason: coordinatorWords,
});

const coordinatorPeers = z.object({
  type: z.literal("coordinator:peers"),
  peers: z
    .array(z.object({ crawlerId: z.int().min(1), address, port: z.int().min(1).max(65_535) }))
    .max(1000),
});

/** Replaces the key of the hello, which stays valid for a limited time. */
const coordinatorKey = z.object({
  type: z.literal("coordinator:key"),
  key: z.string().regex(/^[\x21-\x7e]{16,200}$/),
  scopes: z.array(keyScope).min(1).max(keyScopes.length),
  oldKeySeconds: z
    .number()
    .min(0)
    .max(86_400 * 30),
});

/**
 * The crawler must not contact these hosts, and anything below each domain, any more. Leases on them end at once. Sent when a
 * site opts out, and with each welcome for recent opt-outs.
 */
const coordinatorStopHosts = z.object({
  type: z.literal("coordinator:stop-hosts"),
  domains: z.array(hostName).min(1).max(1000),
  reason: coordinatorWords,
});

/**
 * These parts of sites (a URL, a URL prefix, or a host) must not be requested any more. Nothing of erased parts may be kept.
 * Sent on the same occasions as `coordinator:stop-hosts`.
 */
const coordinatorStopParts = z.object({
  type: z.literal("coordinator:stop-parts"),
  parts: z
    .array(
      z.object({
        scope: z.enum(["url", "prefix", "host"]),
        of: z.string().min(1).max(maxUrlLength),
        erases: z.boolean(),
      }),
    )
    .min(1)
    .max(1000),
  reason: coordinatorWords,
});

/** A release that this crawler's supervisor may run, served at the coordinator's path `/releases/DIGEST`. */
const coordinatorRelease = z.object({
  type: z.literal("coordinator:release"),
  version: releaseVersion,
  digest,
});

export const coordinatorMessage = z.discriminatedUnion("type", [
  coordinatorWelcome,
  coordinatorRefuse,
  coordinatorProbe,
  coordinatorTasks,
  coordinatorWake,
  coordinatorAcknowledge,
  coordinatorPace,
  coordinatorWorkPace,
  coordinatorPeers,
  coordinatorKey,
  coordinatorStopHosts,
  coordinatorStopParts,
  coordinatorRelease,
  coordinatorMove,
  coordinatorAddresses,
  coordinatorSigningKey,
  coordinatorRenewSigningKey,
]);

export type CoordinatorMessage = z.infer<typeof coordinatorMessage>;
export type CoordinatorProbe = z.infer<typeof coordinatorProbe>;
export type CoordinatorWelcome = z.infer<typeof coordinatorWelcome>;
export type CoordinatorRefuse = z.infer<typeof coordinatorRefuse>;

/**
 * Protocol versions that a coordinator of this build serves, newest first: its own, and those before it since the last release,
 * so that a fleet can be upgraded crawler by crawler. The crawler offers what it speaks, and the coordinator picks the newest
 * that both know.
 *
 *   4  release 0.2.0
 *   6  crawlers without work are woken, those that come too many at once are told that the coordinator is busy, the fleet's
 *      coordinators change, and parts of sites are stopped or erased: words that a crawler of version 4 does not know
 *   7  a page's text takes the place of its lexemes and excerpt, so coordinators come first
 */
export const protocolVersions = [7, 6, 4] as const;

/** What a crawler of this build speaks. A coordinator of an earlier version cannot read its results. */
export const crawlerVersions = [7] as const;

const unknownToFour: ReadonlySet<string> = new Set([
  "coordinator:wake",
  "coordinator:addresses",
  "coordinator:stop-parts",
]);

/** Whether a crawler with this version understands a message of this type. */
export function isKnownTo(version: number, { type }: Pick<CoordinatorMessage, "type">): boolean {
  return version > 4 || !unknownToFour.has(type);
}

/** Translates a refusal for a crawler of that version. */
export function inVersion<Refusal extends Pick<CoordinatorRefuse, "code">>(
  version: number,
  refusal: Refusal,
): Refusal {
  return refusal.code === "busy" && version <= 4 ? { ...refusal, code: "internal-error" } : refusal;
}

/** Returns the newest version that both sides know, or null. */
export function agreeOnVersion(offered: readonly number[]): number | null {
  return protocolVersions.find((version) => offered.includes(version)) ?? null;
}

export type Refusal = Omit<CoordinatorRefuse, "type">;
