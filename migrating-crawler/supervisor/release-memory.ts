/** Keeps the supervisor's release state in memory and on disk. Every change is saved before it takes effect. */
import type { CrawlerLog } from "../core/log.ts";
import * as states from "../core/release-state.ts";
import type { ReleaseReport } from "../core/supervisor-messages.ts";
import type { ReleasePolicy } from "../settings/release-policy.ts";
import type { ReleaseShelf } from "./release-store.ts";
import type { Trust } from "./verify-release.ts";

interface MemorySettings {
  readonly shelf: ReleaseShelf;
  readonly log: CrawlerLog;
  readonly now: () => Date;
  readonly againMs: number;
  readonly onReports: (reports: ReleaseReport[]) => void;
}

export class ReleaseMemory {
  readonly #settings: MemorySettings;
  #state: states.ReleaseState;

  constructor(settings: MemorySettings) {
    this.#settings = settings;
    this.#state = settings.shelf.readState();
    settings.shelf.removeDrafts();
    settings.shelf.removeOld(this.#state);
  }

  get state(): states.ReleaseState {
    return this.#state;
  }

  get isWatched(): boolean {
    return states.isWatched(this.#state);
  }

  change(step: (state: states.ReleaseState) => states.ReleaseState): void {
    const before = this.#state;
    const after = step(before);
    if (after === before) return;
    this.#state = after;
    this.#save();
    const news = after.reports.filter((report) => !before.reports.includes(report));
    if (news.length > 0) this.#settings.onReports(news);
  }

  /**
   * A disk that refuses writes does not end the crawl: the supervisor continues from memory, and after a restart from what was
   * saved.
   */
  #save(): void {
    const { shelf, log } = this.#settings;
    try {
      shelf.saveState(this.#state);
    } catch (error) {
      log.error({ error }, "what the supervisor knows of releases cannot be saved");
    }
  }

  /** Records why nothing runs and logs it once. Null means that a release runs. */
  waitFor(reason: string | null): void {
    const { log, now } = this.#settings;
    const before = this.#state.waitsFor?.reason;
    this.change((state) => states.withWaiting(state, reason, now()));
    const { waitsFor } = this.#state;
    if (waitsFor !== null && waitsFor.reason !== before)
      log.warn({ waitsFor: waitsFor.reason }, "no crawler runs here for now");
  }

  pass(): void {
    const { shelf, log } = this.#settings;
    if (!this.isWatched) return;
    this.change(states.passWatch);
    shelf.removeOld(this.#state);
    log.info({ version: this.#state.current?.version }, "the new release runs and is well");
  }

  /** Rolls back to the last good release. Returns false if there is none or it is already current. */
  returnToGood(reason: string): boolean {
    const { log, now, againMs } = this.#settings;
    const returned = states.returnToGood(this.#state, { reason, at: now(), againMs });
    if (returned === null) return false;
    const { version } = this.#state.current ?? {};
    log.warn({ version, reason }, "the new release is not well: back to the one before it");
    this.change(() => returned);
    return true;
  }

  withdraw(reason: string, forbidden: readonly string[]): void {
    const { log, now } = this.#settings;
    log.warn({ version: this.#state.current?.version, reason }, "the release must not run here any more");
    this.change((state) => states.withdrawCurrent(state, { reason, at: now(), forbidden }));
  }

  /** The current release's files differ from what was signed, so another one replaces it until it is fetched again. */
  dropUnsound(reason: string): void {
    const { version } = this.#state.current ?? {};
    this.#settings.log.error(
      { version, reason },
      "the release on this machine's disk is not what was signed",
    );
    this.change((state) => states.dropCurrent(state));
  }

  /** As long as the newest release is not known, none is installed and the administrator is told why. */
  noteNewness({ newness }: Trust): void {
    const reason = newness.type === "stale" ? newness.reason : null;
    const before = this.#state.takesNothing?.reason ?? null;
    this.change((state) => states.withTakingNothing(state, reason, this.#settings.now()));
    const { log } = this.#settings;
    if (reason !== null && before === null)
      log.warn(
        { reason },
        "no release is taken until the coordinator serves what is newest; what runs goes on",
      );
    if (reason === null && before !== null) log.info({}, "releases are taken again");
  }

  /** Withdraws the running release if it was revoked, and returns whether it was. */
  heed({ revocations }: Trust): boolean {
    const { current } = this.#state;
    if (revocations === null || current === null || !revocations.digests.includes(current.digest))
      return false;
    this.withdraw(`it was revoked: ${revocations.reason}`, revocations.digests);
    return true;
  }

  /** Switches to a stored version that the partner's policy pins, and returns whether it did. */
  heedPin({ policy, pin }: ReleasePolicy, { revocations }: Trust): boolean {
    const { current, good, previous } = this.#state;
    if (policy !== "pin" || pin === null || current === null || current.version === pin) return false;
    const pinned = [good, previous].find((kept) => kept?.version === pin);
    if (!pinned || revocations?.digests.includes(pinned.digest)) return false;
    this.#settings.log.info({ version: pin }, "the partner's policy names another release, which takes over");
    this.change((state) => states.swapTo(state, pinned));
    return true;
  }
}
