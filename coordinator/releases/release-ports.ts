/** What is kept of releases: manifests and bundles, whose signatures count, who was offered what and what came of it. */

import type { CrawlerId } from "#core/ids";
import type { CrawlerHello } from "#protocol/messages";
import type { ReleaseManifest } from "#protocol/release";
import type { Envelope } from "#protocol/release-envelope";
import type { DockedCrawler, ReleaseStage, ReleaseState, StagedRelease, WatchedCrawler } from "./staging.ts";

/** The release keys: those trusted first, and the rotations that carry on from them. */
export interface ReleaseKeyStore {
  /** The public keys whose signatures count now, raw in base64url: what an invitation pins. */
  trusted(): Promise<readonly string[]>;
  rotations(): Promise<readonly Envelope[]>;
  /** From now on the fleet's first key, or one more of them; docks that joined before know nothing of it. */
  trustFirst(publicKey: string, now: Date): Promise<void>;
  /** As `trustFirst`, while no key counts. False: one does, and nothing is changed. */
  trustIfNone(publicKey: string, now: Date): Promise<boolean>;
  /** Null: done; otherwise why the rotation cannot be followed. Running coordinators are told. */
  rotate(signed: Envelope, now: Date): Promise<string | null>;
}

export interface ReleaseEntry extends StagedRelease {
  readonly stageWords: string;
  readonly publishedAt: Date;
}

/** How many crawlers a release is with, by what their docks said last. */
export type ReleaseCounts = Readonly<Record<ReleaseState | "offered", number>>;

export interface ReleaseStore {
  /** Null: done; otherwise why not. The envelope and the bundle have been verified. */
  publish(release: {
    readonly manifest: ReleaseManifest;
    readonly signed: Envelope;
    readonly bundle: Uint8Array;
    readonly now: Date;
  }): Promise<string | null>;
  /** Newest first. */
  list(): Promise<readonly ReleaseEntry[]>;
  /**
   * False when there is no such release, or it stands at another stage than `from` by now. Running coordinators
   * are told.
   */
  setStage(version: string, to: StageChange, now: Date): Promise<boolean>;
  /** The list in force; null: no release was ever revoked. */
  revocations(): Promise<Envelope | null>;
  /** Null: done; otherwise why not. Releases on the list are offered to nobody from now on. */
  revoke(signed: Envelope, now: Date): Promise<string | null>;
  /** Calls back whenever a stage, a key or the list of revoked releases changed (NOTIFY `nearcrawl_releases`). */
  onChange(changed: () => void): Promise<{ stop(): Promise<void> }>;
}

export interface StageChange {
  readonly stage: ReleaseStage;
  readonly percent: number | null;
  readonly words: string;
  /** Null: by hand from now on. */
  readonly soakMinutes: number | null;
  /** Left out: as before. */
  readonly firstCrawlerId?: CrawlerId;
  /** Only from there. */
  readonly from?: { readonly stage: ReleaseStage; readonly stageSince: Date | null };
  /** Crawlers that returned from it are offered it anew. */
  readonly again?: boolean;
}

/** A docked crawler as it is known to the database, connected or not. */
export interface DockEntry extends DockedCrawler {
  readonly online: boolean;
  readonly runsVersion: string;
  readonly dockVersion: string;
  readonly policy: string;
}

/** What each crawler's dock runs, was offered and made of it. */
export interface ReleaseFleetStore {
  /** What it said as it came; null: no dock runs it. */
  arrived(crawlerId: CrawlerId, runs: CrawlerHello["release"] | null): Promise<void>;
  /** Not revoked ones, by name. */
  docks(): Promise<readonly DockEntry[]>;
  offered(crawlerId: CrawlerId, version: string, now: Date): Promise<void>;
  /** False when no such release is known. */
  reported(
    crawlerId: CrawlerId,
    report: { readonly version: string; readonly state: ReleaseState; readonly reason: string },
    now: Date,
  ): Promise<boolean>;
  counts(): Promise<ReadonlyMap<string, ReleaseCounts>>;
  /** All docked crawlers as `decideStage` wants them; who is in the stage is the caller's to say. */
  watched(
    version: string,
    since: Date,
  ): Promise<readonly (Omit<WatchedCrawler, "inStage"> & { crawlerId: CrawlerId })[]>;
}

/** What the coordinator serves below /releases/. */
export interface ReleaseFileStore {
  /** Null: there is no such release, or nobody is to have it (it was revoked, or the offer was taken back). */
  bundle(digest: string): Promise<Buffer | null>;
  manifest(digest: string): Promise<Envelope | null>;
}
