/**
 * Remembers sites (with their subdomains) and parts of sites that the coordinator has just excluded (an opt-out). The
 * coordinator no longer leases them, so they have to be remembered only while work is in progress: leases in transit,
 * redirects and probes. They are then forgotten, because the site may return.
 */
import { canParseUrl, isInPart, type SitePart, urlHost } from "#core/ip/url-host";

/** Longer than any message takes. The coordinator waits for the same time after an opt-out is lifted. */
const keptMs = 15 * 60_000;
/** Far more than opt out within that time. If there are more, the oldest are forgotten. */
const mostSites = 10_000;
const mostParts = 1000;

/** The abort reason of a slice's signal. It also cuts off the request in progress. */
export class SiteStop {
  readonly words: string;

  constructor(words: string) {
    this.words = words;
  }

  toString(): string {
    return this.words;
  }
}

interface Stopped {
  readonly untilMs: number;
  readonly stop: SiteStop;
}

function forgetOldest(kept: Map<string, unknown>): void {
  for (const oldest of kept.keys()) {
    if (kept.size <= mostSites) return;
    kept.delete(oldest);
  }
}

export class StoppedSites {
  readonly #stops = new Map<string, Stopped>();
  readonly #parts = new Map<string, readonly (Stopped & { readonly part: SitePart })[]>();

  stop(domains: readonly string[], words: string, nowMs: number): void {
    for (const [domain, { untilMs }] of this.#stops) if (untilMs <= nowMs) this.#stops.delete(domain);
    for (const domain of domains) {
      const name = domain.toLowerCase();
      this.#stops.delete(name);
      this.#stops.set(name, { untilMs: nowMs + keptMs, stop: new SiteStop(words) });
    }
    forgetOldest(this.#stops);
  }

  stopParts(parts: readonly SitePart[], words: string, nowMs: number): void {
    for (const [host, stopped] of this.#parts)
      if (stopped.every(({ untilMs }) => untilMs <= nowMs)) this.#parts.delete(host);
    for (const part of parts) {
      const url = `http:${part.of}`;
      if (part.scope !== "host" && !canParseUrl(url)) continue;
      const host = part.scope === "host" ? part.of : urlHost(url);
      const others = (this.#parts.get(host) ?? []).filter((one) => one.part.of !== part.of);
      this.#parts.delete(host);
      const stopped = { part, untilMs: nowMs + keptMs, stop: new SiteStop(words) };
      this.#parts.set(host, [...others.slice(-(mostParts - 1)), stopped]);
    }
    forgetOldest(this.#parts);
  }

  isStopped(url: string, host: string, nowMs: number): boolean {
    const parts = this.#parts.get(host) ?? [];
    return parts.some(({ part, untilMs }) => untilMs > nowMs && isInPart(part, url));
  }

  /** Returns null if the host itself may be contacted. */
  stopOf(host: string, nowMs: number): SiteStop | null {
    if (this.#stops.size + this.#parts.size === 0) return null;
    let name = host.toLowerCase().replace(/\.$/, "");
    const whole = this.#parts.get(name)?.find(({ part }) => part.scope === "host");
    if (whole !== undefined && whole.untilMs > nowMs) return whole.stop;
    for (;;) {
      const found = this.#stops.get(name);
      if (found !== undefined && found.untilMs > nowMs) return found.stop;
      const dot = name.indexOf(".");
      if (dot < 0) return null;
      name = name.slice(dot + 1);
    }
  }
}
