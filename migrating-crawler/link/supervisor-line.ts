/**
 * The crawler's end of the line to its dock: what the dock told it at the start, what goes into each hello, reports
 * that are passed on to the coordinator, and echoes that only the dock can ask for.
 */

import { timerMs } from "#core/timer-ms";
import type { CoordinatorRefuse } from "#protocol/coordinator-messages";
import type { CrawlerHello, CrawlerMessage } from "#protocol/messages";
import type { CrawlerLog } from "../core/log.ts";
import {
  type CrawlerToDock,
  type DockGreeting,
  type DockMessage,
  dockMessage,
} from "../core/supervisor-messages.ts";
import type { Echoes, EchoRequest } from "../probe/icmp-echo.ts";

/** Why the coordinator wants no more of a crawler, and what to do. */
export interface RefusedCrawler {
  readonly reason: string;
  /** The coordinator's; null: it was not the coordinator that ended it. */
  readonly code: CoordinatorRefuse["code"] | null;
}

/** What a crawler is given by whoever runs it, besides its settings. */
export interface CrawlerSurroundings {
  readonly log: CrawlerLog;
  readonly softwareVersion: string;
  /** The dock that runs this process, if one does. */
  readonly dock?: DockLine;
  /** Called when the coordinator refuses this crawler for good; it has stopped then. */
  readonly onRefused?: (refused: RefusedCrawler) => void;
  /** Called when it was drained by its host's word: it is to leave for good now. */
  readonly onDrained?: () => void;
  /**
   * Called in a move to another host. `moved`: the coordinator has decided it, and the crawler has stopped; `failed`:
   * it came to nothing. In both cases the crawler is to be begun anew from its folder.
   */
  readonly onMove?: (how: "moved" | "failed") => void;
}

/** `process` of a child that was started with an IPC channel. */
interface DockChannel {
  send?: ((message: object, done: (error: Error | null) => void) => boolean) | undefined;
  on(event: "message", listener: (message: unknown) => void): unknown;
}

/** The dock greets right after the start; a machine under load takes its time. */
const greetingMs = 60_000;
/** Signs of life, well within the silence that a dock puts up with. */
const aliveEveryMs = 5000;
/** Beyond a ping's own deadline. */
const echoesLateMs = 2000;

export class DockLine {
  readonly #channel: DockChannel;
  readonly #greeting: DockGreeting;
  /** Not known to be with the coordinator; the first `#told` of them were sent in this session. */
  readonly #reports: DockGreeting["reports"];
  #told = 0;
  #send: ((message: CrawlerMessage) => boolean) | null = null;
  readonly #pings = new Map<number, (rttsMs: number[]) => void>();
  #nextPing = 0;
  #onStop: () => void = () => {};
  /** Before anybody counted. */
  #carriedBytes = 0;
  #onCarried = (bytes: number) => {
    this.#carriedBytes += bytes;
  };
  #isAskedToStop = false;

  /** Waits for the dock's greeting; throws when none comes. */
  static async open(channel: DockChannel, waitMs = greetingMs): Promise<DockLine> {
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`no word of the supervisor within ${waitMs} ms`)),
        waitMs,
      );
      let line: DockLine | null = null;
      channel.on("message", (message) => {
        const { data } = dockMessage.safeParse(message);
        if (line !== null && data !== undefined) line.#take(data);
        if (line !== null || data?.type !== "dock") return;
        clearTimeout(timer);
        line = new DockLine(channel, data);
        resolve(line);
      });
    });
  }

  private constructor(channel: DockChannel, greeting: DockGreeting) {
    this.#channel = channel;
    this.#greeting = greeting;
    this.#reports = [...greeting.reports];
    setInterval(() => this.#say({ type: "alive" }), aliveEveryMs).unref();
  }

  /** For each hello. */
  get helloParts(): Pick<CrawlerHello, "release" | "lastEnd"> {
    const { release, dockVersion, policy, lastEnd } = this.#greeting;
    return {
      ...(release === null ? {} : { release: { ...release, dockVersion, policy } }),
      ...(lastEnd === null ? {} : { lastEnd }),
    };
  }

  /** In which coordinators may be, besides those of the invitation. */
  get coordinatorDomains(): readonly string[] {
    return this.#greeting.coordinatorDomains ?? [];
  }

  /** Of the dock's `ping`. */
  get echoes(): Echoes {
    return {
      canPing: async () => this.#greeting.mayPing ?? false,
      timeEchoes: (request) => this.#timeEchoes(request),
    };
  }

  started(): void {
    this.#say({ type: "started" });
  }

  refused({ reason, code }: RefusedCrawler): void {
    this.#say({ type: "refused", reason: reason.slice(0, 500), ...(code === null ? {} : { code }) });
  }

  /** A session begins. `send`: as the link's. */
  onWelcome(send: (message: CrawlerMessage) => boolean): void {
    this.#say({ type: "healthy" });
    this.#told = 0;
    this.#send = send;
    this.#tell();
  }

  onOffer({ version, digest }: { readonly version: string; readonly digest: string }): void {
    this.#say({ type: "release", version, digest });
  }

  /** The coordinator works messages off in turn: it has what was sent before what it answers. */
  onAnswer(): void {
    if (this.#told === 0) return;
    this.#say({ type: "reported", count: this.#told });
    this.#reports.splice(0, this.#told);
    this.#told = 0;
  }

  /** Calls back once, also when the dock has asked already. */
  onStop(stop: () => void): void {
    if (this.#isAskedToStop) stop();
    this.#onStop = stop;
  }

  /** Bytes that the supervisor's downloads have carried. */
  onCarried(count: (bytes: number) => void): void {
    count(this.#carriedBytes);
    this.#carriedBytes = 0;
    this.#onCarried = count;
  }

  /** None when the dock is late. */
  #timeEchoes({ address, tries, deadlineMs }: EchoRequest): Promise<number[]> {
    const id = this.#nextPing++;
    return new Promise((resolve) => {
      const done = (rttsMs: number[]) => {
        clearTimeout(timer);
        this.#pings.delete(id);
        resolve(rttsMs);
      };
      const timer = setTimeout(() => done([]), timerMs(deadlineMs + echoesLateMs));
      this.#pings.set(id, done);
      this.#say({ type: "ping", id, address, tries, deadlineMs });
    });
  }

  #take(message: DockMessage): void {
    switch (message.type) {
      case "stop":
        this.#isAskedToStop = true;
        this.#onStop();
        break;
      case "reports":
        this.#reports.push(...message.reports);
        this.#tell();
        break;
      case "carried":
        this.#onCarried(message.bytes);
        break;
      case "echoes":
        this.#pings.get(message.id)?.(message.rttsMs);
    }
  }

  #tell(): void {
    for (const report of this.#reports.slice(this.#told)) {
      if (!this.#send?.({ type: "crawler:release-report", ...report })) return;
      this.#told += 1;
    }
  }

  /** Where the dock is gone, the crawler hears of it by the channel's end, and stops. */
  #say(message: CrawlerToDock): void {
    this.#channel.send?.(message, () => {});
  }
}
