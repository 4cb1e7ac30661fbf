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

/** The most coordinator addresses that a crawler is sent and keeps. */
export const mostCoordinators = 16;

/** Malformed URLs pass here: the crawler ignores every address that it may not connect to. */
const coordinatorUrls = z.array(z.string().min(1).max(1000)).max(mostCoordinators);

const coordinatorWelcome = z.object({
  type: z.literal("coordinator:welcome"),
  protocolVersion: z.int(),
  crawlerId: z.int().min(1),
  /** The highest sequence of this spool that is committed; the crawler drops everything up to it. */
  acknowledgedSequence: z.int().min(0),
  /** How many results may be in flight unacknowledged. */
  resultCredits: z.int().min(1).max(10_000),
  heartbeatSeconds: z.int().min(1).max(600),
  /** The crawler gets a message or a WebSocket ping at least this often. Absent: as often as heartbeats. */
  pingSeconds: z.number().positive().max(600).optional(),
  /** After this long offline a crawler's leases go to others, and it drops them itself. */
  departureSeconds: z.number().positive().max(86_400).optional(),
  /** The exact User-Agent of every request to a site. */
  userAgent,
  /** The major version of the coordinator's Postgres, whose lexeme rules the crawler follows. Absent: the newest. */
  postgresVersion: z.int().min(13).max(99).optional(),
  /** The crawler stores it and shows it in the next hello. */
  ticket: ticket.optional(),
  /** The connection's source address as the coordinator sees it. */
  seenAddress: address.optional(),
  /** The coordinator's time, by which a crawler can tell that its own clock is wrong. */
  time: z.iso.datetime().optional(),
  /** Requests by https are signed (RFC 9421, Web Bot Auth) and name this URL of the key set. Absent: they are not signed. */
  signatureAgent: signatureAgent.optional(),
  /** Requests are signed with a key that the crawler makes and announces (signing-key.ts). Absent: with its identity. */
  signingKeys: z.boolean().optional(),
  /** The addresses of this fleet's coordinators, including this one; a crawler that loses one connects to another. */
  coordinators: coordinatorUrls.optional(),
});

/** Sent when the coordinators of the fleet change; as `coordinators` in the welcome. */
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
    /** The coordinator failed (its database, say); the crawler is not at fault. */
    "internal-error",
    /** Too many crawlers connect at once, or the previous session has not ended. Version 4 gets `internal-error`. */
    "busy",
  ]),
  reason: coordinatorWords,
  retry: z.boolean(),
  /** The earliest retry, where one makes sense. Absent: the crawler decides. */
  retryAfterMs: milliseconds.optional(),
});

const coordinatorProbe = z.object({
  type: z.literal("coordinator:probe"),
  requestId: z.int().min(0),
  host: hostName,
  address,
  /** Measure the address that the crawler itself resolves the host's name to, and report it. */
  byName: z.boolean().optional(),
  port: z.int().min(1).max(65_535),
  secure: z.boolean(),
  method: probeMethod,
  tries: z.int().min(1).max(20),
  /** The limit for the whole measurement, including retries and fallbacks. */
  deadlineMs: z.int().min(1).max(60_000),
});

/**
 * Answers `crawler:ready` with at most the requested number of leases. Each is parsed (`lease`) when its work begins. An empty
 * list states the reason and when to ask again.
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

/** Backpressure with its reason: how many results may be in flight from now on; 0 stops shipping. */
const coordinatorPace = z.object({
  type: z.literal("coordinator:pace"),
  resultCredits: z.int().min(0).max(10_000),
  reason: coordinatorWords,
});

/**
 * The crawler has little or much due work and should have fewer or more hosts in progress, always inside its host's limits: one
 * per due slice, on `hurry-up` as many as the limits allow.
 */
const coordinatorWorkPace = z.object({
  type: z.literal("coordinator:work-pace"),
  pace: z.enum(["slow-down", "steady", "hurry-up"]),
  /** Host slices that are due for it or leased to it. Counting stops once the number decides. */
  due: z.int().min(0).max(1_000_000_000),
  reason: coordinatorWords,
});

const coordinatorPeers = z.object({
  type: z.literal("coordinator:peers"),
  peers: z
    .array(z.object({ crawlerId: z.int().min(1), address, port: z.int().min(1).max(65_535) }))
    .max(1000),
});

/** Replaces the key of the hello, which stays valid for at most this long. */
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
 * These hosts and everything below each domain must not be contacted any more; leases on them end at once. Sent when a site
 * opts out, and with each welcome for recent ones.
 */
const coordinatorStopHosts = z.object({
  type: z.literal("coordinator:stop-hosts"),
  domains: z.array(hostName).min(1).max(1000),
  reason: coordinatorWords,
});

/**
 * These parts of sites must not be requested any more: a URL, a URL prefix, or a host. Of erased parts nothing may be kept.
 * Sent like the message above.
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

/** A release that this crawler's supervisor may take, at the coordinator's path `/releases/DIGEST`. */
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
 * Protocol versions that this build speaks, newest first: its own, and that of the release before it, so that a fleet can be
 * upgraded crawler by crawler. The crawler offers its list, the coordinator picks the newest that both know.
 *
 *   4  release 0.2.0
 *   6  crawlers without work are woken, those that come too many at once are told that the coordinator is busy, the fleet's
 *      coordinators change, and parts of sites are stopped or erased: words that a crawler of version 4 does not know
 */
export const protocolVersions = [6, 4] as const;

const unknownToFour: ReadonlySet<string> = new Set([
  "coordinator:wake",
  "coordinator:addresses",
  "coordinator:stop-parts",
]);

/** Whether a crawler with this version understands such a message. */
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
