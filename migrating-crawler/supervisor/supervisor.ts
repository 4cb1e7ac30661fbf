/**
 * Runs the current release's bundle as a child, keeps it running, and swaps it for another one and back. Only the state on
 * disk (release-state.ts) decides what runs, and `#settle` makes the process match it.
 *
 *   nothing → (a release was installed) watched → (welcomed, and runs well for the watch time) good
 *   watched → (it ends or hangs three times by itself, or is never welcomed) the last good one; the release is tried
 *             again after 1, 4 and 16 hours, and then no more
 *   any     → (revoked) the last good one, or nothing
 */

import { existsSync } from "node:fs";
import { timerMs } from "#core/timer-ms";
import type { Goodbye } from "#protocol/messages";
import type { CrawlerLog } from "../core/log.ts";
import { membershipFile } from "../core/membership.ts";
import * as states from "../core/release-state.ts";
import type { CrawlerToSupervisor, ReleaseReport } from "../core/supervisor-messages.ts";
import { policyWords } from "../settings/release-policy.ts";
import { type ChildEnd, CrawlerChild, childCommand, type PingService } from "./crawler-child.ts";
import { ReleaseMemory } from "./release-memory.ts";
import type { DownloadAllowance, ReleaseSource } from "./release-source.ts";
import { ReleaseUpdates, type ReleaseWait } from "./release-updates.ts";
import {
  childMark,
  dockVersion,
  removeMark,
  type SupervisorSettings,
  type SupervisorTiming,
  writeMark,
} from "./supervisor-home.ts";
import { faultOfKept, type Trust, type TrustSettings } from "./verify-release.ts";

interface SupervisorParts extends TrustSettings {
  readonly home: string;
  readonly source: ReleaseSource;
  /** If absent, downloads are not counted. */
  readonly allowance?: DownloadAllowance;
  /** The current settings.toml, or the last valid one. */
  readonly settings: () => SupervisorSettings;
  readonly pings: PingService;
  readonly log: CrawlerLog;
  readonly onLine: (line: string) => void;
  readonly env: NodeJS.ProcessEnv;
  /** Tells the coordinator in a separate session while no crawler runs. Never rejects. */
  readonly tell: (goodbye: Goodbye) => Promise<Told>;
  /** A crawler is about to start, or none runs for now. */
  readonly onPresence: (isRunning: boolean) => Promise<void>;
  readonly timing: SupervisorTiming;
  readonly random: () => number;
}

/** `refused` means that the coordinator accepts no session with this crawler. */
export type Told =
  | { readonly type: "told" | "failed" }
  | { readonly type: "refused"; readonly reason: string; readonly isRemoved: boolean };

export class Supervisor {
  readonly #settings: SupervisorParts;
  readonly #memory: ReleaseMemory;
  readonly #updates: ReleaseUpdates;
  #child: CrawlerChild | null = null;
  #runs: states.KeptRelease | null = null;
  #isHealthy = false;
  #turn: Promise<void> = Promise.resolve();
  #watch: NodeJS.Timeout | undefined;
  #restart: NodeJS.Timeout | undefined;
  #crashes = 0;
  #replacing = false;
  #stopping = false;
  /** The reason for waiting that the coordinator already knows. */
  #told: string | null = null;

  constructor(settings: SupervisorParts) {
    this.#settings = settings;
    const { shelf, source, pinned, log, now, random, timing } = settings;
    const onReports = (reports: ReleaseReport[]) => this.#child?.send({ type: "reports", reports });
    if (settings.allowance !== undefined)
      settings.allowance.tell = (bytes) => this.#child?.send({ type: "carried", bytes }) ?? false;
    this.#memory = new ReleaseMemory({ shelf, log, now, onReports, againMs: timing.againMs });
    const { pollMs, emptyPollMs, retryMs, lookMs } = timing;
    this.#updates = new ReleaseUpdates({
      ...{ shelf, source, pinned, log, now, random, pollMs, emptyPollMs, retryMs, lookMs },
      policy: () => settings.settings().policy,
      state: () => this.#memory.state,
      isCutOff: () => !this.#isHealthy,
      handlers: {
        onRelease: (release) => this.#onRelease(release),
        onSeen: ({ sequence }, signers) =>
          this.#memory.change((state) => states.noteSeen(state, sequence, signers)),
        onLeft: (report, done) => this.#onLeft(report, done),
        onNothing: (wait, isFound) => this.#onNothing(wait, isFound),
        onTrust: (trust) => this.#onTrust(trust),
      },
    });
  }

  get state(): states.ReleaseState {
    return this.#memory.state;
  }

  async start(): Promise<void> {
    this.#memory.heed(this.#updates.keptTrust());
    await this.#settle();
    this.#updates.look();
  }

  async stop(): Promise<void> {
    this.#stopping = true;
    clearTimeout(this.#watch);
    clearTimeout(this.#restart);
    await this.#updates.stop();
    await this.#turn;
    await this.#child?.stop();
  }

  /** The crawler tells the coordinator that it will not return, and ends. Nothing is started any more. */
  async leave(): Promise<void> {
    this.#stopping = true;
    if (this.#child?.pid !== undefined) process.kill(this.#child.pid, "SIGUSR2");
    await this.#child?.ended;
    await this.stop();
  }

  #settle(): Promise<void> {
    this.#turn = this.#turn.then(() => this.#settleNow()).catch((error) => this.#onFault(error));
    return this.#turn;
  }

  async #settleNow(): Promise<void> {
    if (this.#stopping) return;
    if (this.#child !== null && this.#isCurrent(this.#runs)) return;
    clearTimeout(this.#restart);
    await this.#endChild();
    const release = await this.#startable();
    if (this.#stopping) return;
    await this.#settings.onPresence(release !== null);
    if (release !== null) this.#startChild(release);
  }

  /** The crawler stops in an orderly way: its requests end, its results stay in the spool, its leases are returned. */
  async #endChild(): Promise<void> {
    if (this.#child === null) return;
    this.#replacing = true;
    await this.#child.stop();
    this.#replacing = false;
  }

  /** Returns the current release, or its replacement if its files were changed or it ended too often. */
  async #startable(): Promise<states.KeptRelease | null> {
    for (;;) {
      const { current, watchedStarts } = this.#memory.state;
      if (current === null) return null;
      const trust = this.#updates.keptTrust();
      const fault = await faultOfKept(current, { shelf: this.#settings.shelf, trust });
      if (fault !== null) {
        this.#memory.dropUnsound(fault);
      } else if (this.#memory.isWatched && watchedStarts >= this.#settings.timing.mostWatchedStarts) {
        if (!this.#memory.returnToGood(`it was started ${watchedStarts} times and never ran for long`))
          return current;
      } else return current;
    }
  }

  #startChild(release: states.KeptRelease): void {
    const { home, shelf, settings, pings, env, timing, onLine } = this.#settings;
    const { version, digest } = release;
    if (this.#memory.isWatched) {
      this.#memory.change((state) => ({ ...state, watchedStarts: state.watchedStarts + 1 }));
    }
    const { policy, readable, writable } = settings();
    const child: CrawlerChild = new CrawlerChild({
      command: childCommand(
        { bundle: shelf.bundlePath(digest), home, readable, writable },
        { env, nodeFlags: process.allowedNodeEnvironmentFlags },
      ),
      ...{ silenceMs: timing.silenceMs, stopMs: timing.stopMs },
      onMessage: (message) => this.#onMessage(child, message),
      onLine,
      onEnd: (end) => this.#onEnd(release, end),
    });
    // The child opens nothing before the greeting. Its mark must come first, so that another supervisor would find it.
    if (child.pid !== undefined) writeMark(childMark(home), child.pid);
    const { lastEnd, reports } = this.#memory.state;
    child.send({
      ...{ type: "dock", dockVersion, release: { version, digest }, policy: policyWords(policy) },
      ...{ lastEnd, reports, mayPing: pings.mayPing },
      coordinatorDomains: [...(this.#updates.keptTrust().roles.coordinators ?? [])],
    });
    this.#child = child;
    this.#runs = release;
    this.#told = null;
    this.#memory.waitFor(null);
    this.#settings.log.info({ version, pid: child.pid }, "the crawler was started");
    if (this.#memory.isWatched) this.#expectWelcome();
  }

  #onMessage(child: CrawlerChild, message: CrawlerToSupervisor): void {
    switch (message.type) {
      case "healthy":
        this.#onHealthy();
        break;
      case "release":
        this.#onOffer(message.digest);
        break;
      case "reported":
        this.#memory.change((state) => states.withoutReports(state, message.count));
        break;
      case "ping":
        void this.#settings.pings.ping(message).then((rttsMs) => {
          child.send({ type: "echoes", id: message.id, rttsMs });
        });
    }
  }

  #onHealthy(): void {
    if (this.#isHealthy) return;
    this.#isHealthy = true;
    // The coordinator now knows how the previous process ended.
    this.#memory.change((state) => ({ ...state, lastEnd: null }));
    if (this.#isCurrent(this.#runs)) this.#memory.change(states.noteWelcome);
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => this.#onWatched(), this.#settings.timing.watchMs);
  }

  #onWatched(): void {
    this.#crashes = 0;
    if (this.#isCurrent(this.#runs)) this.#memory.pass();
  }

  /** While the previous release is stopping, its outcome says nothing about the new one. */
  #isCurrent(release: states.KeptRelease | null): boolean {
    return release !== null && release.digest === this.#memory.state.current?.digest;
  }

  #onOffer(digest: string): void {
    const { current, offered } = this.#memory.state;
    if (digest === current?.digest) return;
    if (digest !== offered?.digest) {
      const firstAt = this.#settings.now().toISOString();
      this.#memory.change((state) => ({ ...state, offered: { digest, firstAt } }));
    }
    this.#updates.look();
  }

  #expectWelcome(): void {
    clearTimeout(this.#watch);
    this.#watch = setTimeout(() => void this.#onNoWelcome(), this.#settings.timing.welcomeMs);
  }

  /** Only a coordinator that answers the supervisor but not the crawler speaks against the release. */
  async #onNoWelcome(): Promise<void> {
    const child = this.#child;
    const reached = await this.#updates.reachesCoordinator();
    if (this.#stopping || child !== this.#child || this.#isHealthy || !this.#isCurrent(this.#runs)) return;
    const { welcomeMs } = this.#settings.timing;
    const words = `the coordinator did not welcome it within ${welcomeMs / 1000} s`;
    if (reached && this.#memory.returnToGood(words)) void this.#settle();
    else this.#expectWelcome();
  }

  #onEnd(release: states.KeptRelease, end: ChildEnd): void {
    const { log, home } = this.#settings;
    this.#child = null;
    this.#runs = null;
    this.#isHealthy = false;
    clearTimeout(this.#watch);
    removeMark(childMark(home));
    const fields = { version: release.version, reason: end.words };
    log[end.inOrder ? "info" : "warn"](fields, "the crawler has ended");
    if (!end.inOrder) {
      const at = this.#settings.now().toISOString();
      const reason = `release ${release.version}: ${end.words}`.slice(0, 500);
      this.#memory.change((state) => ({ ...state, lastEnd: { at, reason } }));
    }
    if (this.#replacing || this.#stopping) return;
    if (!existsSync(membershipFile(home))) {
      log.info({}, "this folder's crawler has moved to another host: nothing runs here any more");
      return;
    }
    if (end.refused?.isRemoved) this.#onRemoved(end.refused.reason);
    else if (this.#isNotWell(release, end)) void this.#settle();
    else this.#startAgain(end);
  }

  /** Returns true if the watched release ended once too often, so that the last good one is current again. */
  #isNotWell(release: states.KeptRelease, end: ChildEnd): boolean {
    if (end.inOrder || end.isFromOutside || !this.#isCurrent(release) || !this.#memory.isWatched)
      return false;
    this.#memory.change((state) => ({ ...state, watchedFaults: state.watchedFaults + 1 }));
    const faults = this.#memory.state.watchedFaults;
    if (faults < this.#settings.timing.mostWatchedFaults) return false;
    return this.#memory.returnToGood(`it ended ${faults} times by itself; the last time, ${end.words}`);
  }

  #startAgain(end: ChildEnd): void {
    const { firstMs, mostMs } = this.#settings.timing.backOff;
    this.#crashes += 1;
    const waitMs =
      end.refused === null ? Math.min(mostMs, firstMs * 2 ** Math.min(this.#crashes - 1, 30)) : mostMs;
    this.#settings.log.info({ waitMs }, "the crawler will be started again");
    this.#memory.waitFor(
      end.refused === null
        ? `its next start, ${Math.ceil(waitMs / 1000)} s after it ended: ${end.words}`
        : refusedWords(end.refused.reason),
    );
    void this.#settings.onPresence(false);
    this.#restart = setTimeout(() => void this.#settle(), timerMs(waitMs));
    // The running release may never work, so another one is looked for.
    if (this.#memory.isWatched) this.#updates.look();
  }

  #onRelease(release: states.KeptRelease): void {
    if (this.#stopping || this.#isBad(release)) return;
    this.#settings.log.info({ version: release.version }, "a new release was verified and takes over");
    this.#crashes = 0;
    this.#memory.change((state) => states.swapTo(state, release));
    void this.#settle();
  }

  #isBad({ digest }: states.KeptRelease): boolean {
    return states.badRelease(this.#memory.state, digest, this.#settings.now()) !== null;
  }

  #onLeft(report: ReleaseReport, done: string | null): void {
    this.#settings.log.info({ ...report }, "a release that is offered was not taken");
    this.#memory.change((state) => states.withReport(states.withoutOffer(state, done), report));
  }

  /** The coordinator is notified once per reason, and again as long as the notification fails. */
  async #onNothing({ code, words }: ReleaseWait, isFound: boolean): Promise<void> {
    const isNews = isFound && words !== this.#told;
    const told = isNews ? await this.#settings.tell({ code, reason: `it waits for ${words}` }) : null;
    if (this.#stopping) return;
    if (told?.type === "told") this.#told = words;
    if (told?.type === "refused" && told.isRemoved) this.#onRemoved(told.reason);
    else this.#memory.waitFor(told?.type === "refused" ? refusedWords(told.reason) : words);
  }

  /** The coordinator removed this crawler for good, so it is not asked any more. A new join first stops this supervisor. */
  #onRemoved(reason: string): void {
    void this.#updates.stop();
    this.#memory.waitFor(
      `a new invitation; the operator has removed this crawler, and it asks the coordinator no more: ${reason}`,
    );
    void this.#settings.onPresence(false);
  }

  #onTrust(trust: Trust): void {
    this.#memory.noteNewness(trust);
    const revoked = this.#memory.heed(trust);
    if (this.#memory.heedPin(this.#settings.settings().policy, trust) || revoked) void this.#settle();
  }

  #onFault(error: unknown): void {
    this.#settings.log.error({ error }, "the supervisor could not do its part; it tries again");
    this.#restart = setTimeout(() => void this.#settle(), this.#settings.timing.backOff.mostMs);
  }
}

const refusedWords = (reason: string) => `the coordinator, which refuses this crawler: ${reason}`;
