/** Metrics of the exchange between coordinators. There are few related coordinators, so each has its own series. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { TakenUrls } from "./exchange-store.ts";

export class CoordinatorMetrics {
  readonly #waiting: Gauge<"coordinator">;
  readonly #dropped: Counter;
  readonly #urls: Counter<"with" | "taken">;
  readonly #exchanges: Counter<"with">;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#waiting = new Gauge({
      name: "nearcrawl_foreign_urls_waiting",
      help: "URLs waiting for their coordinator, including those in transit",
      labelNames: ["coordinator"],
      registers,
    });
    this.#dropped = new Counter({
      name: "nearcrawl_foreign_urls_dropped_total",
      help: "URLs of other coordinators given up because too many waited",
      registers,
    });
    this.#urls = new Counter({
      name: "nearcrawl_exchanged_urls_total",
      help: "URLs exchanged with parent or children: sent, and received by result: admitted, passed-on, repeated",
      labelNames: ["with", "taken"],
      registers,
    });
    this.#exchanges = new Counter({
      name: "nearcrawl_coordinator_exchanges_total",
      help: "Exchanges with parent or children that succeeded",
      labelNames: ["with"],
      registers,
    });
  }

  exchanged(
    withWhom: "parent" | "child",
    { admitted, passedOn, repeated, told = 0 }: TakenUrls & { told?: number },
  ): void {
    this.#exchanges.inc({ with: withWhom });
    for (const [taken, urls] of Object.entries({ admitted, "passed-on": passedOn, repeated, told })) {
      this.#urls.inc({ with: withWhom, taken }, urls);
    }
  }

  /** Resets the gauge first, so that a removed coordinator leaves no series. */
  observe(waiting: readonly { readonly name: string; readonly urls: number }[], dropped: number): void {
    this.#waiting.reset();
    for (const { name, urls } of waiting) this.#waiting.set({ coordinator: name }, urls);
    this.#dropped.inc(dropped);
  }
}
