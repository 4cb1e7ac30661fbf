/**
 * Looks for releases: offers that arrive through the crawler, the general offer if nothing runs well, and revocations. One
 * check runs at a time, and one that failed because of the network is repeated soon. The supervisor decides what follows.
 */

import { createHash } from "node:crypto";
import { createReadStream, rmSync } from "node:fs";
import { z } from "zod";
import { timerMs } from "#core/timer-ms";
import { type Goodbye, releaseVersion } from "#protocol/messages";
import { currentRelease, type ReleaseManifest, verifyManifest } from "#protocol/release";
import { type Envelope, maxEnvelopeBytes, readEnvelope } from "#protocol/release-envelope";
import { jsonOf } from "../core/json.ts";
import type { CrawlerLog } from "../core/log.ts";
import { badRelease, type KeptRelease, newestSeen, type ReleaseState } from "../core/release-state.ts";
import type { ReleaseReport } from "../core/supervisor-messages.ts";
import { judgeByPolicy, type ReleasePolicy } from "../settings/release-policy.ts";
import { type ReleaseSource, SourceFailure } from "./release-source.ts";
import { dockVersion, type SupervisorTiming } from "./supervisor-home.ts";
import { keptTrust, refreshTrust, type Trust, type TrustSettings } from "./verify-release.ts";

export interface ReleaseWait {
  readonly code: Goodbye["code"];
  readonly words: string;
}

interface UpdateHandlers {
  /** The release is verified, allowed by the partner and on disk. */
  onRelease(release: KeptRelease): void;
  /** Is called for every genuine manifest with its signers, whether or not the release is installed. */
  readonly onSeen: (manifest: Pick<ReleaseManifest, "sequence">, signers: readonly string[]) => void;
  /** A release was not installed. `done` is the digest of an offer that need not be checked again. */
  onLeft(report: ReleaseReport, done: string | null): void;
  /** There is no release to run. `isFound` means that the coordinator confirmed it. */
  onNothing(wait: ReleaseWait, isFound: boolean): Promise<void>;
  /** Is called after the lists were requested, because the running release may be revoked. */
  onTrust(trust: Trust): void;
}

type Intervals = Pick<SupervisorTiming, "pollMs" | "emptyPollMs" | "retryMs" | "lookMs">;

interface UpdateSettings extends TrustSettings, Intervals {
  readonly source: ReleaseSource;
  readonly policy: () => ReleasePolicy;
  readonly state: () => ReleaseState;
  /** True if nothing runs or the running release was not welcomed, so that no offer can arrive through it. */
  readonly isCutOff: () => boolean;
  readonly handlers: UpdateHandlers;
  readonly log: CrawlerLog;
  /** Returns a uniform number in [0, 1), so that a fleet does not ask all at once. */
  readonly random: () => number;
}

export class ReleaseUpdates {
  readonly #settings: UpdateSettings;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | null = null;
  #again = false;
  #vain = 0;
  #lastLeft = "";
  readonly #wrongBundles = new Map<string, number>();
  #endedAtMs = Number.NEGATIVE_INFINITY;
  #stopped = false;

  constructor(settings: UpdateSettings) {
    this.#settings = settings;
  }

  keptTrust(): Trust {
    return keptTrust(this.#settings);
  }

  look(): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    const waitMs = this.#endedAtMs + this.#settings.lookMs - performance.now();
    if (this.#looking !== null) this.#again = true;
    else if (waitMs > 0) this.#timer = setTimeout(() => this.look(), timerMs(waitMs));
    else this.#looking = this.#run();
  }

  async reachesCoordinator(): Promise<boolean> {
    try {
      await refreshTrust(this.#settings);
      return true;
    } catch (error) {
      if (error instanceof SourceFailure) return false;
      throw error;
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#settings.source.close();
    await this.#looking;
  }

  async #run(): Promise<void> {
    const failure = await this.#lookOnce();
    this.#looking = null;
    this.#endedAtMs = performance.now();
    if (this.#stopped) return;
    this.#vain = failure === null ? 0 : this.#vain + 1;
    const waitMs = this.#again ? 0 : this.#waitMs();
    this.#again = false;
    if (failure !== null) this.#settings.log.warn({ reason: failure, waitMs }, "no look at the releases");
    this.#timer = setTimeout(() => this.look(), timerMs(waitMs));
  }

  #waitMs(): number {
    const { emptyPollMs, retryMs, random } = this.#settings;
    const pollMs =
      this.#settings.state().current === null
        ? Math.min(emptyPollMs, this.#settings.pollMs)
        : this.#settings.pollMs;
    const meantMs = this.#vain === 0 ? pollMs : Math.min(pollMs, retryMs * 2 ** Math.min(this.#vain - 1, 30));
    return Math.round(meantMs * (0.8 + 0.4 * random()));
  }

  async #lookOnce(): Promise<string | null> {
    const { handlers } = this.#settings;
    try {
      const trust = await refreshTrust(this.#settings);
      handlers.onTrust(trust);
      const offered = this.#settings.state().offered?.digest ?? null;
      const taken = await this.#take(trust);
      if (taken?.type === "taken") handlers.onRelease(taken.release);
      if (taken?.type === "left") this.#onLeft(taken.report, taken.retry ? null : offered);
      if (taken?.type !== "taken") await this.#onNothing(whatFor(taken, trust), taken?.type !== "failed");
      return taken?.type === "failed" ? taken.reason : null;
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      // The newest release may have become outdated, and an unresponsive coordinator must not hide that.
      handlers.onTrust(this.keptTrust());
      await this.#onNothing(coordinatorAway(reason), false);
      return reason;
    }
  }

  async #onNothing(wait: ReleaseWait, isFound: boolean): Promise<void> {
    if (this.#settings.state().current === null && !this.#stopped)
      await this.#settings.handlers.onNothing(wait, isFound);
  }

  /** A release refused again for the same reason is not reported again. */
  #onLeft(report: ReleaseReport, done: string | null): void {
    const words = JSON.stringify(report);
    if (words !== this.#lastLeft || done !== null) this.#settings.handlers.onLeft(report, done);
    this.#lastLeft = words;
  }

  async #take(trust: Trust): Promise<Taken | null> {
    const { source, shelf, policy, state, isCutOff, now, handlers } = this.#settings;
    const { onSeen } = handlers;
    const looked = { policy: policy(), trust, now: now(), wrongBundles: this.#wrongBundles };
    const tools = { source, shelf, onSeen, ...looked };
    const known = state();
    if (trust.newness.type === "stale") return failed(`no release is taken: ${trust.newness.reason}`);
    const { offered, current } = known;
    const isResting = offered !== null && isTriedLater(known, offered.digest, tools.now);
    if (offered !== null && offered.digest !== current?.digest && !isResting) {
      const { digest, firstAt } = offered;
      return await takeOffered({ digest, firstAt: new Date(firstAt), state: known }, tools);
    }
    return isCutOff() ? await takeCurrent(known, tools) : null;
  }
}

const coordinatorAway = (reason: string): ReleaseWait => ({
  code: undefined,
  words: `an answer of the coordinator, which is asked again by itself: ${reason}`,
});

const withNewInvitation = "run join with it and --again";

/** Explains what is missing before anything can run, and who can fix it. */
function whatFor(taken: Exclude<Taken, { type: "taken" }> | null, { roles }: Trust): ReleaseWait {
  if (roles.releases.keys.length === 0) {
    const why = "the invitation pinned none, so no release can be believed";
    const words = `a release key: ${why}. Ask the operator for a new invitation, and ${withNewInvitation}`;
    return { code: "awaits-key", words };
  }
  if (taken === null) {
    const what = "Its operator has to offer one (nearcrawl release list); it is taken by itself then";
    return {
      code: "awaits-release",
      words: `a release: the coordinator offers none to all crawlers. ${what}`,
    };
  }
  if (taken.type === "failed") return coordinatorAway(taken.reason);
  const { version, state, reason } = taken.report;
  if (state !== "refused") {
    const words = `this machine's administrator: release ${version} is offered, and by [releases] in settings.toml ${reason}`;
    return { code: "awaits-administrator", words };
  }
  if (!taken.isUntrusted) {
    const words = `a release that may run: ${version} is refused here, ${reason}. Tell the operator`;
    return { code: "awaits-other-release", words };
  }
  const what = `Ask the operator whether the fleet has a new key, and for a new invitation; then ${withNewInvitation}`;
  return {
    code: "awaits-key",
    words: `a release signed by a key that the invitation pinned: ${version} is not. ${what}`,
  };
}

// Turns an offer into a verified bundle on disk. It checks the manifest, keys and revocations, the partner's policy, and
// finally the bundle, whose length and digest must match the manifest. A mismatch is a result, not an exception.

/** Room for a manifest, a revocation list, and as much for all rotations together. */
const maxCurrentBytes = 3 * maxEnvelopeBytes;

/** `retry` means that it may succeed later (after a network error, or when the bundle has become available). */
type Taken =
  | { readonly type: "taken"; readonly release: KeptRelease }
  | {
      readonly type: "left";
      readonly report: ReleaseReport;
      readonly retry: boolean;
      readonly isUntrusted?: true;
    }
  | { readonly type: "failed"; readonly reason: string };

interface TakingTools extends Pick<UpdateSettings, "source" | "shelf"> {
  readonly policy: ReleasePolicy;
  readonly trust: Trust;
  readonly now: Date;
  readonly onSeen: UpdateHandlers["onSeen"];
  /** How often each bundle did not match its digest, because each download costs megabytes. */
  readonly wrongBundles: Map<string, number>;
}

const wrongBundleMs = 86_400_000;

/** Fetches the release with this digest. Returns null if it already runs. Network errors result in `failed`. */
async function takeOffered(offer: Offer, tools: TakingTools): Promise<Taken | null> {
  return await orFailed(async () => {
    const text = await tools.source.text(`/releases/${offer.digest}/manifest.json`, maxEnvelopeBytes);
    // The release to retry has been withheld or revoked in the meantime, and the coordinator already knows how it did here.
    const before = offer.state.bad.find(({ digest }) => digest === offer.digest);
    if (text === null && before !== undefined) {
      const { version, reason } = before;
      return { type: "left", report: { version, state: "returned", reason }, retry: false } as const;
    }
    if (text === null) return failed("the coordinator does not have the manifest of the release it offers");
    const signed = readEnvelope(text);
    if ("refused" in signed) return failed(`the manifest: ${signed.refused}`);
    return await takeSigned(signed, offer, tools);
  });
}

/** Fetches the general offer. Returns null if there is none or it already runs. */
export async function takeCurrent(state: ReleaseState, tools: TakingTools): Promise<Taken | null> {
  return await orFailed(async () => {
    const text = await tools.source.text("/releases/current.json", maxCurrentBytes);
    const { data } = currentRelease.safeParse(text === null ? null : jsonOf(text));
    if (data === undefined) return failed("current.json is not what a coordinator serves");
    if (data.manifest === null) return null;
    const firstAt = tools.now;
    return await takeSigned(data.manifest, { digest: null, firstAt, state }, tools);
  });
}

/** The release was rolled back here and is not reported until it is tried again. */
function isTriedLater(state: ReleaseState, digest: string, now: Date): boolean {
  return (badRelease(state, digest, now)?.againAt ?? null) !== null;
}

interface Wanted {
  /** Null accepts the general offer. */
  readonly digest: string | null;
  readonly firstAt: Date;
  readonly state: ReleaseState;
}

type Offer = Wanted & { readonly digest: string };

/** Returns null if it already runs or nothing better is available. */
async function takeSigned(signed: Envelope, wanted: Wanted, tools: TakingTools): Promise<Taken | null> {
  const { state, digest } = wanted;
  const { roles, revocations, newness } = tools.trust;
  const { now } = tools;
  const role = roles.releases;
  // Even if the general offer was not seen, a release older than the stated one is not accepted.
  const stated = newness.type === "stated" ? (newness.timestamp.release?.sequence ?? 0) : 0;
  const newestSequence = Math.max(newestSeen(state, role), stated);
  const conditions = { role, now, newestSequence, revocations, dockVersion };
  const verified = verifyManifest(signed, conditions);
  // The general offer is usually the running release or an older one, which is not reported.
  if ("refused" in verified && digest === null && state.current !== null) return null;
  if ("refused" in verified)
    return {
      ...refused(versionIn(signed), verified.refused),
      ...(verified.isUntrusted && { isUntrusted: true }),
    };
  const { manifest, signers } = verified;
  tools.onSeen(manifest, signers);
  const { version } = manifest;
  if (digest !== null && manifest.digest !== digest)
    return refused(version, "the manifest is another release's");
  if (manifest.digest === state.current?.digest) return null;
  if (isTriedLater(state, manifest.digest, now)) return null;
  const bad = badRelease(state, manifest.digest, now);
  if (bad !== null) return refused(version, `it was tried here: ${bad.reason}`);
  const answer = judgeByPolicy(version, {
    policy: tools.policy,
    now,
    firstOfferedAt: wanted.firstAt,
    hasRelease: state.current !== null,
  });
  if (!answer.take) {
    const { state: what, reason } = answer;
    return { type: "left", report: { version, state: what, reason }, retry: true };
  }
  return await fetchBundle(signed, manifest, tools);
}

/** The manifest stays beside the bundle and is verified at each start. */
async function fetchBundle(signed: Envelope, manifest: ReleaseManifest, tools: TakingTools): Promise<Taken> {
  const { source, shelf } = tools;
  const { version, digest, sequence, bytes } = manifest;
  const release = { version, digest, sequence, bytes };
  if (await shelf.holds(release)) {
    shelf.writeManifest(digest, signed);
    return { type: "taken", release };
  }
  const wrongAtMs = tools.wrongBundles.get(digest) ?? Number.NEGATIVE_INFINITY;
  if (tools.now.getTime() - wrongAtMs < wrongBundleMs)
    return refused(version, "the bundle was not the one that was signed, and is fetched again in a day");
  const file = shelf.draftPath(digest);
  if (!(await source.download(`/releases/${digest}`, { bytes, file }))) {
    return failed("the coordinator does not have the bundle of the release it offers");
  }
  const hash = createHash("sha256");
  let found = 0;
  for await (const piece of createReadStream(file)) {
    found += (piece as Buffer).length;
    hash.update(piece as Buffer);
  }
  if (found !== bytes || hash.digest("hex") !== digest) {
    rmSync(file);
    tools.wrongBundles.set(digest, tools.now.getTime());
    return refused(
      version,
      found === bytes
        ? "the bundle is not the one that was signed"
        : `the bundle has ${found} bytes, its manifest says ${bytes}`,
    );
  }
  shelf.writeManifest(digest, signed);
  shelf.keepDraft(digest);
  return { type: "taken", release };
}

async function orFailed<Value>(work: () => Promise<Value>): Promise<Value | Taken> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof SourceFailure) return failed(error.message);
    throw error;
  }
}

const failed = (reason: string): Taken => ({ type: "failed", reason });

function refused(version: string, reason: string): Taken {
  return { type: "left", report: { version, state: "refused", reason: reason.slice(0, 500) }, retry: false };
}

/** Reads the version in an untrusted manifest, only for the report. */
function versionIn({ body }: Envelope): string {
  const { data } = z.object({ version: releaseVersion }).safeParse(jsonOf(body));
  return data?.version ?? "0.0";
}
