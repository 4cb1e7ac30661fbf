/** Records a running crawler's session, fetches and errors for status reports. */
import { urlHost } from "#core/ip/url-host";
import type { CoordinatorWelcome } from "#protocol/coordinator-messages";
import type { ProbeOutcome } from "#protocol/messages";
import type { FetchResult } from "#protocol/result";
import { LocalTime } from "../core/local-time.ts";
import { KeptFile, type KeptSettings } from "../limits/state-file.ts";
import { Tally } from "../link/crawler-hello.ts";
import type { CrawlerSurroundings } from "../link/supervisor-line.ts";
import type { CrawlerConfig } from "../settings/config.ts";
import {
  type Blame,
  emptyStory,
  MinuteCounter,
  onDay,
  type Story,
  storyFile,
  storyFrom,
  type UrlCounts,
  withEnd,
  withError,
  withUrl,
} from "./status-history.ts";
import type { ProbeCounts } from "./status-report.ts";

interface RecordSettings {
  readonly kept: KeptSettings;
  readonly coordinatorHost: string;
  readonly timeZone: string | null;
  readonly lastEnd: Story["lastEnds"][number] | undefined;
  readonly now?: () => Date;
}

export class StatusRecord {
  readonly tally = new Tally();
  readonly startedAt: Date;
  welcome: CoordinatorWelcome | null = null;
  connectedSince: Date | null = null;
  /** When the link was lost, or when the crawler started if there was none yet. Null if there is a link. */
  notConnectedSince: Date | null;
  downReason = "not connected to the coordinator yet";
  /** The coordinator's explanation while it accepts no results. */
  paceReason = "";
  probes: ProbeCounts = { asked: 0, measured: 0, notAllowed: 0, unanswered: 0 };
  readonly #settings: RecordSettings;
  readonly #now: () => Date;
  readonly #time: LocalTime;
  readonly #file: KeptFile;
  readonly #minute = new MinuteCounter();
  #story: Story;

  static of(
    { home, coordinatorUrl, limits }: CrawlerConfig,
    { log, supervisor }: Pick<CrawlerSurroundings, "log" | "supervisor">,
  ): StatusRecord {
    return new StatusRecord({
      kept: { home, warn: (fields, words) => log.warn(fields, words) },
      coordinatorHost: urlHost(new URL(coordinatorUrl)),
      timeZone: limits.timeZone,
      lastEnd: supervisor?.helloParts.lastEnd,
    });
  }

  constructor(settings: RecordSettings) {
    this.#settings = settings;
    this.#now = settings.now ?? (() => new Date());
    this.startedAt = this.#now();
    this.notConnectedSince = this.startedAt;
    this.#time = new LocalTime(settings.timeZone);
    this.#file = new KeptFile({ ...settings.kept, ...storyFile });
    this.#story = this.#file.read(storyFrom) ?? emptyStory;
    if (settings.lastEnd !== undefined) this.#set(withEnd(this.#story, settings.lastEnd));
  }

  get story(): Story {
    return onDay(this.#story, this.#time.at(this.#now()).day);
  }

  get lastMinute(): UrlCounts {
    return this.#minute.counts(performance.now());
  }

  welcomed(welcome: CoordinatorWelcome): void {
    this.welcome = welcome;
    this.connectedSince = this.#now();
    this.notConnectedSince = null;
    this.downReason = "";
  }

  /** Repeated attempts that fail for the same reason count as one error. */
  down(reason: string): void {
    const words = `no link to the coordinator: ${reason}`;
    if (words !== this.downReason) {
      this.#failed({
        blame: "network",
        host: this.#settings.coordinatorHost,
        code: "link-down",
        words: reason,
      });
    }
    this.connectedSince = null;
    this.notConnectedSince ??= this.#now();
    this.downReason = words;
  }

  fetched(result: FetchResult): void {
    const { outcome, url } = result;
    this.tally.count(result);
    this.#minute.count(outcome.type, performance.now());
    const { story } = this;
    this.#set({ ...story, urls: withUrl(story.urls, outcome.type) });
    if (outcome.type !== "failed") return;
    const { blame, code, reason } = outcome;
    this.#failed({ blame, host: urlHost(new URL(url)), code, words: reason });
  }

  probed({ type }: ProbeOutcome): void {
    const { asked, measured, notAllowed, unanswered } = this.probes;
    this.probes = {
      asked: asked + 1,
      measured: measured + (type === "measured" ? 1 : 0),
      notAllowed: notAllowed + (type === "not-allowed" ? 1 : 0),
      unanswered: unanswered + (type === "measured" || type === "not-allowed" ? 0 : 1),
    };
  }

  close(): void {
    this.#file.close();
  }

  #failed(error: { blame: Blame; host: string; code: string; words: string }): void {
    this.#set(withError(this.story, { at: this.#now().toISOString(), ...error }));
  }

  #set(story: Story): void {
    this.#story = story;
    this.#file.changed(() => this.#story);
  }
}
