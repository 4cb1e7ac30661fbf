/**
 * What the dock and the crawler that it runs as its child say to each other over Node's IPC channel. Both ends
 * check what arrives: the dock trusts no release, and a release must get along with older and newer docks, so
 * unknown types and fields are passed over.
 */
import { z } from "zod";
import { digest, words } from "#protocol/fields";
import { crawlerReleaseReport, releaseVersion } from "#protocol/messages";

/** Most reports that wait for a coordinator: the oldest go first. */
export const maxReleaseReports = 20;

/** What became of a release, to be passed on to the coordinator. */
export const releaseReport = crawlerReleaseReport.omit({ type: true });
export type ReleaseReport = z.infer<typeof releaseReport>;

/** How the process before this one ended, when nobody had asked it to. */
export const lastEnd = z.object({ at: z.iso.datetime(), reason: words });

const runningRelease = z.object({ version: releaseVersion, digest });

const reports = z.array(releaseReport).max(maxReleaseReports);

export const dockMessage = z.discriminatedUnion("type", [
  /** Before anything else: the child opens nothing in its home until it has this. */
  z.object({
    type: z.literal("dock"),
    dockVersion: z.string().max(40),
    /** Null: a bundle that was put there by hand. */
    release: runningRelease.nullable(),
    /** The partner's policy for releases, in words. */
    policy: words,
    lastEnd: lastEnd.nullable(),
    reports,
    /** The dock can run the system's `ping` for the child. */
    mayPing: z.boolean().optional(),
    /** Domains that the root keys have signed for coordinators. */
    coordinatorDomains: z.array(z.string()).optional(),
  }),
  /** More reports, while it runs. */
  z.object({ type: z.literal("reports"), reports }),
  /** The times of the echoes that came back, in ms. */
  z.object({ type: z.literal("echoes"), id: z.int().min(0), rttsMs: z.array(z.number()).max(20) }),
  /** The supervisor's own downloads have carried so many bytes, which count as the crawler's. */
  z.object({ type: z.literal("carried"), bytes: z.int().min(0) }),
  /** End what is under way, keep the results, and exit with 0. */
  z.object({ type: z.literal("stop") }),
]);
export type DockMessage = z.infer<typeof dockMessage>;
export type DockGreeting = Extract<DockMessage, { type: "dock" }>;

export const crawlerToDock = z.discriminatedUnion("type", [
  z.object({ type: z.literal("started") }),
  /** The coordinator has welcomed it. */
  z.object({ type: z.literal("healthy") }),
  /** Every few seconds: it is not stuck. */
  z.object({ type: z.literal("alive") }),
  /** The coordinator wants no more of it; it ends by itself. */
  z.object({
    type: z.literal("refused"),
    reason: words,
    /** The coordinator's code; `revoked`: this crawler was removed and is not served again. */
    code: z.string().max(40).optional(),
  }),
  /** The coordinator offers this release. */
  z.object({ type: z.literal("release"), version: releaseVersion, digest }),
  /** The coordinator has so many of the reports, the oldest ones. */
  z.object({ type: z.literal("reported"), count: z.int().min(1).max(maxReleaseReports) }),
  /** ICMP echoes to an address: the child may start no process. */
  z.object({
    type: z.literal("ping"),
    id: z.int().min(0),
    address: z.union([z.ipv4(), z.ipv6()]),
    tries: z.int().min(1).max(20),
    deadlineMs: z.int().min(1).max(60_000),
  }),
]);
export type CrawlerToDock = z.infer<typeof crawlerToDock>;
