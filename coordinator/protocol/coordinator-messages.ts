/**
 * What the coordinator says to a migrating crawler; the rules are those of messages.ts, which has what crawlers say.
 */
import { z } from "zod";
import { address, coordinatorWords, digest, hostName, maxUrlLength, milliseconds } from "./fields.ts";
import { keyScope, keyScopes, signatureAgent, ticket } from "./identity.ts";
import { offeredLease } from "./lease.ts";
import { probeMethod, releaseVersion } from "./messages.ts";
import { coordinatorMove } from "./move.ts";
import { coordinatorRenewSigningKey, coordinatorSigningKey } from "./signing-key.ts";
import { userAgent } from "./user-agent.ts";

/** Addresses of coordinators that a crawler is told of, and keeps. */
export const mostCoordinators = 16;

/** What is no URL of the form is left to the crawler, which takes none that it may not connect to. */
const coordinatorUrls = z.array(z.string().min(1).max(1000)).max(mostCoordinators);

const coordinatorWelcome = z.object({
  type: z.literal("coordinator:welcome"),
  protocolVersion: z.int(),
  crawlerId: z.int().min(1),
  /** Highest sequence of this spool that is safe in the database; the crawler drops everything up to it. */
  acknowledgedSequence: z.int().min(0),
  /** How many results may be under way unacknowledged. */
  resultCredits: z.int().min(1).max(10_000),
  heartbeatSeconds: z.int().min(1).max(600),
  /** So often the crawler has a sign of the coordinator at least (a message, or a WebSocket ping). Absent: as often as heartbeats. */
  pingSeconds: z.number().positive().max(600).optional(),
  /** A crawler that is away for so long loses its leases to others, and lets go of them itself. */
  departureSeconds: z.number().positive().max(86_400).optional(),
  /** Of every request to a site, as it stands. */
  userAgent,
  /** Major version of the coordinator's Postgres: lexemes are made as it makes them. Absent: the newest. */
  postgresVersion: z.int().min(13).max(99).optional(),
  /** To be kept on disk and shown in the next hello. */
  ticket: ticket.optional(),
  /** Where this connection comes from, as the coordinator sees it. */
  seenAddress: address.optional(),
  /** The coordinator's time, so that a crawler can tell that its clock is wrong. */
  time: z.iso.datetime().optional(),
  /**
   * Requests by https are signed (RFC 9421, Web Bot Auth), and name this URL as that of the key set. Absent: they are not.
   */
  signatureAgent: signatureAgent.optional(),
  /** With a signing key that the crawler makes and announces (signing-key.ts). Absent: with its identity. */
  signingKeys: z.boolean().optional(),
  /** Where this fleet's coordinators are, this one among them; a crawler that loses one goes to another. */
  coordinators: coordinatorUrls.optional(),
});

/**
 * The coordinators that a crawler of this fleet may connect to have changed. As `coordinators` of the welcome.
 */
const coordinatorAddresses = z.object({
  type: z.literal("coordinator:addresses"),
  urls: coordinatorUrls,
});

/** The session ends: why, in words, and whether trying again later makes sense. */
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
    /** A signature is missing or wrong: of the hello, or of results. */
    "bad-signature",
    /** Two machines have one identity: this folder is a copy, or the other one is. */
    "copied-folder",
    /** The name is another host's by now; or this host's identity has another name. Said where a move was made. */
    "moved",
    /** Not the crawler's fault: the coordinator could not do its part (its database, say). */
    "internal-error",
    /** `internal-error` to version 4: more crawlers come at once than can be let in, or the one before is not gone yet. */
    "busy",
  ]),
  reason: coordinatorWords,
  retry: z.boolean(),
  /** Where trying again makes sense: not before so long. Absent: as the crawler sees fit. */
  retryAfterMs: milliseconds.optional(),
});

const coordinatorProbe = z.object({
  type: z.literal("coordinator:probe"),
  requestId: z.int().min(0),
  host: hostName,
  address,
  /** True: measure the address that the host's name resolves to for the crawler itself, and report it. */
  byName: z.boolean().optional(),
  port: z.int().min(1).max(65_535),
  secure: z.boolean(),
  method: probeMethod,
  tries: z.int().min(1).max(20),
  /** For the whole measurement, all tries and fall-backs together. */
  deadlineMs: z.int().min(1).max(60_000),
});

/**
 * Answer to `crawler:ready`: no more leases than that asked for. Each is read (`lease`) when it is begun. An empty list says
 * why in words and when asking again makes sense.
 */
const coordinatorTasks = z.object({
  type: z.literal("coordinator:tasks"),
  leases: z.array(offeredLease).max(1000),
  askAgainMs: milliseconds,
  reason: coordinatorWords,
});

/** To a crawler that was told that nothing is due: something may be now, and it asks before the time that it was told. */
const coordinatorWake = z.object({ type: z.literal("coordinator:wake") });

/** Everything up to this sequence is committed. */
const coordinatorAcknowledge = z.object({
  type: z.literal("coordinator:acknowledge"),
  sequence: z.int().min(0),
});

/** Backpressure, with its reason: how many results may be under way from now on; 0 stops shipping. */
const coordinatorPace = z.object({
  type: z.literal("coordinator:pace"),
  resultCredits: z.int().min(0).max(10_000),
  reason: coordinatorWords,
});

/**
 * The crawler has little due work, or much, and is to have fewer or more hosts under way at a time,
 * always inside its host's limits: one for each due slice, on `hurry-up` as many as the limits allow.
 */
const coordinatorWorkPace = z.object({
  type: z.literal("coordinator:work-pace"),
  pace: z.enum(["slow-down", "steady", "hurry-up"]),
  /** Host slices that are due for it or in its hands; of many, no more than it took to tell. */
  due: z.int().min(0).max(1_000_000_000),
  reason: coordinatorWords,
});

/** The other crawlers, to be measured. */
const coordinatorPeers = z.object({
  type: z.literal("coordinator:peers"),
  peers: z
    .array(z.object({ crawlerId: z.int().min(1), address, port: z.int().min(1).max(65_535) }))
    .max(1000),
});

/** A new key in place of the one that was shown in the hello, which is good for so long at most. */
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
 * Hosts are not to be contacted any more, with everything below each domain: leases on them end at once. Sent when
 * a site opts out, and with each welcome for those of late.
 */
const coordinatorStopHosts = z.object({
  type: z.literal("coordinator:stop-hosts"),
  domains: z.array(hostName).min(1).max(1000),
  reason: coordinatorWords,
});

/**
 * Parts of sites are not to be requested any more: a URL, a URL with what is below it, or a host. Of those that are erased nothing is
 * to be kept either. Sent as the message above.
 */
const coordinatorStopParts = z.object({
  type: z.literal("coordinator:stop-parts"),
  parts: z
    .array(
      z.object({
        scope: z.enum(["url", "prefix", "host"]),
        /** Without a scheme; a host's name. */
        of: z.string().min(1).max(maxUrlLength),
        erases: z.boolean(),
      }),
    )
    .min(1)
    .max(1000),
  reason: coordinatorWords,
});

/** A release that this crawler's dock may take, by its place at the coordinator: `/releases/DIGEST`. */
const coordinatorRelease = z.object({
  type: z.literal("coordinator:release"),
  version: releaseVersion,
  /** SHA-256 of the bundle, hex. */
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

/** Whether a crawler that speaks this version knows what to do with such a message. */
export function isKnownTo(version: number, { type }: Pick<CoordinatorMessage, "type">): boolean {
  return version > 4 || !unknownToFour.has(type);
}

/** A refusal in the words of that version. */
export function inVersion<Refusal extends Pick<CoordinatorRefuse, "code">>(
  version: number,
  refusal: Refusal,
): Refusal {
  return refusal.code === "busy" && version <= 4 ? { ...refusal, code: "internal-error" } : refusal;
}

/** The newest version both sides know, or null. */
export function agreeOnVersion(offered: readonly number[]): number | null {
  return protocolVersions.find((version) => offered.includes(version)) ?? null;
}

/** Why a crawler may not come, or stay. */
export type Refusal = Omit<CoordinatorRefuse, "type">;
