/**
 * The crawler's end of the IPC line to its supervisor: the greeting, the supervisor's part of each hello, reports for the
 * coordinator, and echoes that only the supervisor can send.
 */

import { timerMs } from "#core/timer-ms";
import type { CoordinatorRefuse } from "#protocol/coordinator-messages";
import type { CrawlerHello, CrawlerMessage } from "#protocol/messages";
import type { CrawlerLog } from "../core/log.ts";
import {
  type CrawlerToSupervisor,
  type SupervisorGreeting,
  type SupervisorMessage,
  supervisorMessage,
} from "../core/supervisor-messages.ts";
import type { Echoes, EchoRequest } from "../probe/icmp-echo.ts";

/** Why the coordinator refuses a crawler, and the remedy. */
export interface RefusedCrawler {
  readonly reason: string;
  /** The coordinator's code. Null if something else ended the crawler. */
  readonly code: CoordinatorRefuse["code"] | null;
}

/** What whoever runs a crawler gives it besides its settings. */
export interface CrawlerSurroundings {
  readonly log: CrawlerLog;
  readonly softwareVersion: string;
  readonly supervisor?: SupervisorLine;
  /** Is called when the coordinator has refused this crawler for good, after it has stopped. */
  readonly onRefused?: (refused: RefusedCrawler) => void;
  /** Is called when a drain has finished. The crawler must then leave for good. */
  readonly onDrained?: () => void;
  /**
   * Is called in a move to another host. `moved`: the coordinator has decided it, and the crawler has stopped. `failed`: the
   * move was abandoned. In both cases, the crawler must be started again from its folder.
   */
  readonly onMove?: (how: "moved" | "failed") => void;
}

/** The `process` object of a child with an IPC channel. */
interface SupervisorChannel {
  send?: ((message: object, done: (error: Error | null) => void) => boolean) | undefined;
  on(event: "message", listener: (message: unknown) => void): unknown;
}

/** The supervisor greets right after the start, but that can take longer on a loaded machine. */
const greetingMs = 60_000;
/** Interval between signs of life, well below the supervisor's limit. */
const aliveEveryMs = 5000;
/** Grace period after a ping's own deadline. */
const echoesLateMs = 2000;

export class SupervisorLine {
  readonly #channel: SupervisorChannel;
  readonly #greeting: SupervisorGreeting;
  /** Reports that the coordinator may lack. The first `#told` of them were sent in this session. */
  readonly #reports: SupervisorGreeting["reports"];
  #told = 0;
  #send: ((message: CrawlerMessage) => boolean) | null = null;
  readonly #pings = new Map<number, (rttsMs: number[]) => void>();
  #nextPing = 0;
  #onStop: () => void = () => {};
  #carriedBytes = 0;
  #onCarried = (bytes: number) => {
    this.#carriedBytes += bytes;
  };
  #isAskedToStop = false;

  /** Throws if no greeting arrives. */
  static async open(channel: SupervisorChannel, waitMs = greetingMs): Promise<SupervisorLine> {
    return await new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => reject(new Error(`no word of the supervisor within ${waitMs} ms`)),
        waitMs,
      );
      let line: SupervisorLine | null = null;
      channel.on("message", (message) => {
        const { data } = supervisorMessage.safeParse(message);
        if (line !== null && data !== undefined) line.#take(data);
        if (line !== null || data?.type !== "dock") return;
        clearTimeout(timer);
        line = new SupervisorLine(channel, data);
        resolve(line);
      });
    });
  }

  private constructor(channel: SupervisorChannel, greeting: SupervisorGreeting) {
    this.#channel = channel;
    this.#greeting = greeting;
    this.#reports = [...greeting.reports];
    setInterval(() => this.#say({ type: "alive" }), aliveEveryMs).unref();
  }

  get helloParts(): Pick<CrawlerHello, "release" | "lastEnd"> {
    const { release, dockVersion, policy, lastEnd } = this.#greeting;
    return {
      ...(release === null ? {} : { release: { ...release, dockVersion, policy } }),
      ...(lastEnd === null ? {} : { lastEnd }),
    };
  }

  /** Domains that coordinators may have besides those of the invitation. */
  get coordinatorDomains(): readonly string[] {
    return this.#greeting.coordinatorDomains ?? [];
  }

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

  onWelcome(send: (message: CrawlerMessage) => boolean): void {
    this.#say({ type: "healthy" });
    this.#told = 0;
    this.#send = send;
    this.#tell();
  }

  onOffer({ version, digest }: { readonly version: string; readonly digest: string }): void {
    this.#say({ type: "release", version, digest });
  }

  /** The coordinator processes messages in order, so an answer confirms everything sent before it. */
  onAnswer(): void {
    if (this.#told === 0) return;
    this.#say({ type: "reported", count: this.#told });
    this.#reports.splice(0, this.#told);
    this.#told = 0;
  }

  /** Calls back once, even if the request came before this call. */
  onStop(stop: () => void): void {
    if (this.#isAskedToStop) stop();
    this.#onStop = stop;
  }

  /** Counts the bytes that the supervisor's downloads have carried. */
  onCarried(count: (bytes: number) => void): void {
    count(this.#carriedBytes);
    this.#carriedBytes = 0;
    this.#onCarried = count;
  }

  /** Resolves with an empty list if the supervisor is late. */
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

  #take(message: SupervisorMessage): void {
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

  /** If the supervisor has ended, the closed channel stops the crawler. */
  #say(message: CrawlerToSupervisor): void {
    this.#channel.send?.(message, () => {});
  }
}
