/**
 * Hosts whose language may have changed: those of which pages came in, and once all that had pages before anybody asked
 * for languages. A host's language is that of most of its pages; until one is known, every language's set may hold it.
 */
import type { HostHash } from "#core/ids";
import type { DomainSetStore } from "../../domain-sets/domain-set-store.ts";

/** Hosts that are kept in mind; of more, some wait for their next page. */
const mostNoted = 20_000;
const hostsPerPass = 500;

export class HostLanguages {
  readonly #store: Pick<DomainSetStore, "refreshLanguages" | "hostsWithPages">;
  readonly #noted = new Set<HostHash>();
  /** How far the look at those from before has come; `done`: all were looked at. */
  #seen: HostHash | "done" | null = null;

  constructor(store: Pick<DomainSetStore, "refreshLanguages" | "hostsWithPages">) {
    this.#store = store;
  }

  note(hosts: readonly HostHash[]): void {
    for (const host of hosts) {
      if (this.#noted.size >= mostNoted) return;
      this.#noted.add(host);
    }
  }

  /** Returns how many hosts have another language now. */
  async pass(): Promise<number> {
    const noted = [...this.#noted].slice(0, hostsPerPass);
    for (const host of noted) this.#noted.delete(host);
    const earlier = await this.#earlier();
    return await this.#store.refreshLanguages([...new Set([...noted, ...earlier])]);
  }

  async #earlier(): Promise<HostHash[]> {
    if (this.#seen === "done") return [];
    const hosts = await this.#store.hostsWithPages(this.#seen, hostsPerPass);
    this.#seen = hosts.at(-1) ?? "done";
    return hosts;
  }
}
