/**
 * Defines the messages between the supervisor and its child crawler over Node's IPC channel. Both ends validate them: the
 * supervisor trusts no release, and a release must work with older and newer supervisors. Unknown types and fields are
 * therefore ignored.
 */
import { z } from "zod";
import { digest, words } from "#protocol/fields";
import { crawlerReleaseReport, releaseVersion } from "#protocol/messages";

export const maxReleaseReports = 20;

export const releaseReport = crawlerReleaseReport.omit({ type: true });
export type ReleaseReport = z.infer<typeof releaseReport>;

export const lastEnd = z.object({ at: z.iso.datetime(), reason: words });

const runningRelease = z.object({ version: releaseVersion, digest });

const reports = z.array(releaseReport).max(maxReleaseReports);

export const supervisorMessage = z.discriminatedUnion("type", [
  /** The first message. The child opens nothing in its home before it arrives. */
  z.object({
    type: z.literal("dock"),
    dockVersion: z.string().max(40),
    /** Null if the bundle was installed by hand. */
    release: runningRelease.nullable(),
    policy: words,
    lastEnd: lastEnd.nullable(),
    reports,
    /** True if the supervisor can run the system's `ping` for the child. */
    mayPing: z.boolean().optional(),
    /** Coordinator domains that the root keys have signed. */
    coordinatorDomains: z.array(z.string()).optional(),
  }),
  z.object({ type: z.literal("reports"), reports }),
  z.object({ type: z.literal("echoes"), id: z.int().min(0), rttsMs: z.array(z.number()).max(20) }),
  /** Bytes that the supervisor itself downloaded, which count towards the crawler's limits. */
  z.object({ type: z.literal("carried"), bytes: z.int().min(0) }),
  /** Asks the child to finish open work, keep its results, and exit with 0. */
  z.object({ type: z.literal("stop") }),
]);
export type SupervisorMessage = z.infer<typeof supervisorMessage>;
export type SupervisorGreeting = Extract<SupervisorMessage, { type: "dock" }>;

export const crawlerToSupervisor = z.discriminatedUnion("type", [
  z.object({ type: z.literal("started") }),
  z.object({ type: z.literal("healthy") }),
  /** The child sends this every few seconds to show that it is not stuck. */
  z.object({ type: z.literal("alive") }),
  z.object({
    type: z.literal("refused"),
    reason: words,
    /** The coordinator's error code. `revoked` means that this crawler was removed for good. */
    code: z.string().max(40).optional(),
  }),
  z.object({ type: z.literal("release"), version: releaseVersion, digest }),
  /** The coordinator has received this many of the oldest reports. */
  z.object({ type: z.literal("reported"), count: z.int().min(1).max(maxReleaseReports) }),
  /** Asks for ICMP echoes, because the child may not start processes. */
  z.object({
    type: z.literal("ping"),
    id: z.int().min(0),
    address: z.union([z.ipv4(), z.ipv6()]),
    tries: z.int().min(1).max(20),
    deadlineMs: z.int().min(1).max(60_000),
  }),
]);
export type CrawlerToSupervisor = z.infer<typeof crawlerToSupervisor>;
