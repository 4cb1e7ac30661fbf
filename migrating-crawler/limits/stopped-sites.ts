/**
 * Sites that are not to be contacted any more, with everything below each, because the coordinator has just said so
 * (an opt-out). It leases nothing of them either, so this only has to outlast what is under way: leases that are
 * on their way to us, redirects and probes. Then it is forgotten, for the site may come back.
 */

/** Longer than any message takes; the coordinator leaves a site alone for so long after an opt-out was lifted. */
const keptMs = 15 * 60_000;
/** Far more than opt out in that time; of more, the oldest are forgotten. */
const mostSites = 10_000;

/** Why a slice's signal was aborted: not only is no further request made, the one under way is cut off. */
export class SiteStop {
  readonly words: string;

  constructor(words: string) {
    this.words = words;
  }

  toString(): string {
    return this.words;
  }
}

export class StoppedSites {
  readonly #stops = new Map<string, { readonly untilMs: number; readonly stop: SiteStop }>();

  stop(domains: readonly string[], words: string, nowMs: number): void {
    for (const [domain, { untilMs }] of this.#stops) if (untilMs <= nowMs) this.#stops.delete(domain);
    for (const domain of domains) {
      const name = domain.toLowerCase();
      this.#stops.delete(name);
      this.#stops.set(name, { untilMs: nowMs + keptMs, stop: new SiteStop(words) });
    }
    for (const oldest of this.#stops.keys()) {
      if (this.#stops.size <= mostSites) return;
      this.#stops.delete(oldest);
    }
  }

  /** Null: the host may be contacted as far as this goes. */
  stopOf(host: string, nowMs: number): SiteStop | null {
    if (this.#stops.size === 0) return null;
    let name = host.toLowerCase().replace(/\.$/, "");
    for (;;) {
      const found = this.#stops.get(name);
      if (found !== undefined && found.untilMs > nowMs) return found.stop;
      const dot = name.indexOf(".");
      if (dot < 0) return null;
      name = name.slice(dot + 1);
    }
  }
}
