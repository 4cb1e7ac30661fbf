/**
 * Looks for releases: what the coordinator offers through the crawler, what it offers to all when nothing runs
 * well, and what was revoked. One look at a time; whoever looks in vain for the network's sake looks again soon.
 * What is to follow from a find is for the dock to do.
 */
import type { CrawlerLog } from "../core/log.ts";
import type { ReleaseReport } from "./dock-messages.ts";
import { dockVersion } from "./dock-version.ts";
import type { ReleasePolicy } from "./release-policy.ts";
import type { ReleaseShelf } from "./release-shelf.ts";
import { type ReleaseSource, SourceFailure } from "./release-source.ts";
import type { KeptRelease, ReleaseState } from "./release-state.ts";
import { keptTrust, refreshTrust, type Trust } from "./release-trust.ts";
import { type Taken, takeCurrent, takeOffered } from "./take-release.ts";

export interface UpdateHandlers {
  /** Verified, wanted by the partner, and on the disk. */
  onRelease(release: KeptRelease): void;
  /** A release was left where it is. `done`: the offer with this digest need not be looked at again. */
  onLeft(report: ReleaseReport, done: string | null): void;
  /** There is no release to run. `words`: `It waits for …`; `isFound`: the coordinator was reached, and this is so. */
  onNothing(words: string, isFound: boolean): Promise<void>;
  /** The lists were asked for: what was revoked may be what runs. */
  onTrust(trust: Trust): void;
}

export interface UpdateSettings {
  readonly shelf: ReleaseShelf;
  readonly source: ReleaseSource;
  readonly pinnedKeys: readonly string[];
  /** Asked for each look: settings change. */
  readonly policy: () => ReleasePolicy;
  readonly state: () => ReleaseState;
  /** Nothing runs, or what runs has not been welcomed by the coordinator: no offer can arrive through it. */
  readonly isCutOff: () => boolean;
  readonly handlers: UpdateHandlers;
  readonly log: CrawlerLog;
  readonly now: () => Date;
  /** Uniform in [0, 1): a fleet does not ask at once. */
  readonly random: () => number;
  /** Between two looks, and after one in vain (doubled each time). */
  readonly pollMs: number;
  readonly emptyPollMs: number;
  readonly retryMs: number;
}

export class ReleaseUpdates {
  readonly #settings: UpdateSettings;
  #timer: NodeJS.Timeout | undefined;
  #looking: Promise<void> | null = null;
  #again = false;
  #vain = 0;
  #lastLeft = "";
  #stopped = false;

  constructor(settings: UpdateSettings) {
    this.#settings = settings;
  }

  /** What was believed when the dock last looked. */
  keptTrust(): Trust {
    return keptTrust(this.#settings);
  }

  /** Now; and again when the look that is under way has ended. */
  look(): void {
    if (this.#stopped) return;
    clearTimeout(this.#timer);
    if (this.#looking !== null) this.#again = true;
    else this.#looking = this.#run();
  }

  /** Whether the coordinator can be asked at all. */
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
    if (this.#stopped) return;
    this.#vain = failure === null ? 0 : this.#vain + 1;
    const waitMs = this.#again ? 0 : this.#waitMs();
    this.#again = false;
    if (failure !== null) this.#settings.log.warn({ reason: failure, waitMs }, "no look at the releases");
    this.#timer = setTimeout(() => this.look(), waitMs);
  }

  /** Between four fifths and six fifths of what it is meant to be. */
  #waitMs(): number {
    const { emptyPollMs, retryMs, random } = this.#settings;
    const pollMs =
      this.#settings.state().current === null
        ? Math.min(emptyPollMs, this.#settings.pollMs)
        : this.#settings.pollMs;
    const meantMs = this.#vain === 0 ? pollMs : Math.min(pollMs, retryMs * 2 ** Math.min(this.#vain - 1, 30));
    return Math.round(meantMs * (0.8 + 0.4 * random()));
  }

  /** Null, or why it was in vain. */
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
      await this.#onNothing(coordinatorAway(reason), false);
      return reason;
    }
  }

  async #onNothing(words: string, isFound: boolean): Promise<void> {
    if (this.#settings.state().current === null && !this.#stopped)
      await this.#settings.handlers.onNothing(words, isFound);
  }

  /** A release that is left again for the same reason is no news. */
  #onLeft(report: ReleaseReport, done: string | null): void {
    const words = JSON.stringify(report);
    if (words !== this.#lastLeft || done !== null) this.#settings.handlers.onLeft(report, done);
    this.#lastLeft = words;
  }

  async #take(trust: Trust): Promise<Taken | null> {
    const { source, shelf, policy, state, isCutOff, now } = this.#settings;
    const tools = { source, shelf, dockVersion, policy: policy(), trust, now: now() };
    const known = state();
    const { offered, current } = known;
    if (offered !== null && offered.digest !== current?.digest) {
      const offer = { digest: offered.digest, firstAt: new Date(offered.firstAt) };
      return await takeOffered(offer, known, tools);
    }
    return isCutOff() ? await takeCurrent(known, tools) : null;
  }
}

const coordinatorAway = (reason: string) =>
  `an answer of the coordinator, which is asked again by itself: ${reason}`;

/** What is missing before anything can run, and who can do something about it. */
function whatFor(taken: Exclude<Taken, { type: "taken" }> | null, { keys }: Trust): string {
  if (keys.length === 0) {
    return "a release key: the invitation pinned none, so no release can be believed. Ask the operator for a new invitation, and run join with it and --again";
  }
  if (taken === null) {
    return "a release: the coordinator offers none to all crawlers. Its operator has to offer one (nearcrawl release list); it is taken by itself then";
  }
  if (taken.type === "failed") return coordinatorAway(taken.reason);
  const { version, state, reason } = taken.report;
  if (state !== "refused")
    return `this machine's administrator: release ${version} is offered, and by [releases] in settings.toml ${reason}`;
  if (!reason.includes("not signed by a trusted key")) {
    return `a release that may run: ${version} is refused here, ${reason}. Tell the operator`;
  }
  return `a release signed by a key that the invitation pinned: ${version} is not. Ask the operator whether the fleet has a new key, and for a new invitation; then run join with it and --again`;
}
