/**
 * Resolves names with c-ares (real TTLs, no thread pool) and caches the answers for their TTL. `localhost` never leaves the
 * machine (RFC 6761 section 6.3). Failures are cached briefly, and simultaneous callers share one query.
 */
import { Resolver } from "node:dns/promises";
import { LRUCache } from "lru-cache";
import { within } from "#core/timer-ms";
import { Failure } from "../core/failure.ts";
import { literalAddress } from "./address-guard.ts";

const maxNames = 10_000;
const maxAddresses = 16;
const minTtlSeconds = 5;
const maxTtlSeconds = 3600;
const failureSeconds = 30;
const queryTimeoutMs = 3000;
/**
 * Estimates, since the real sizes are unknown: the headers of a query and its answer with the RFC 6891 record, and an address
 * record.
 */
const messageBytes = 2 * (12 + 6 + 11);
const recordBytes = 28;

interface NameAnswer {
  readonly addresses: readonly string[];
  /** Null if the answer was cached or needed no query. */
  readonly dnsMs: number | null;
}

export class NameCache {
  readonly #resolver = new Resolver({ timeout: queryTimeoutMs, tries: 2 });
  readonly #ipv6: () => Promise<boolean>;
  readonly #known = new LRUCache<string, readonly string[] | Failure>({ max: maxNames });
  readonly #asking = new Map<string, Promise<readonly string[]>>();

  readonly #onQuery: (bytes: number) => void;

  /** `ipv6`: whether IPv6 addresses are useful now. `onQuery`: receives the estimated bytes of a query and its answer. */
  constructor(settings: {
    readonly servers: readonly string[];
    readonly ipv6: () => Promise<boolean>;
    readonly onQuery?: (bytes: number) => void;
  }) {
    this.#onQuery = settings.onQuery ?? (() => {});
    if (settings.servers.length > 0) this.#resolver.setServers([...settings.servers]);
    this.#ipv6 = settings.ipv6;
  }

  /** Returns IPv4 addresses first. Throws a Failure if there are none, or none in time. */
  async resolve(host: string, withinMs = Number.POSITIVE_INFINITY): Promise<NameAnswer> {
    const literal = literalAddress(host);
    if (literal !== null) return { addresses: [literal], dnsMs: null };
    if (/(^|\.)localhost\.?$/i.test(host)) return { addresses: ["127.0.0.1"], dnsMs: null };
    const known = this.#known.get(host);
    if (known instanceof Failure) throw known;
    if (known) return { addresses: known, dnsMs: null };
    const startedMs = performance.now();
    // c-ares asks each server several times, which can take longer than a connection may.
    const addresses = await within(withinMs, this.#ask(host));
    if (addresses === null) {
      throw new Failure(
        "dns-no-answer",
        `no DNS server answered for ${host} within ${Math.round(withinMs)} ms`,
      );
    }
    return { addresses, dnsMs: performance.now() - startedMs };
  }

  /** Queries all IPv6 addresses without the cache. Returns an empty list if there are none, null without a timely answer. */
  async ipv6Of(name: string): Promise<string[] | null> {
    if (!(await this.#ipv6())) return [];
    try {
      const found = await this.#resolver.resolve6(name);
      this.#onQuery(messageBytes + 2 * name.length + found.length * recordBytes);
      return found.slice(0, maxAddresses);
    } catch (error) {
      return ["ENODATA", "ENOTFOUND"].includes((error as { code?: string }).code ?? "") ? [] : null;
    }
  }

  close(): void {
    this.#resolver.cancel();
  }

  #ask(host: string): Promise<readonly string[]> {
    const running = this.#asking.get(host);
    if (running) return running;
    const asking = this.#query(host).finally(() => this.#asking.delete(host));
    this.#asking.set(host, asking);
    return asking;
  }

  async #query(host: string): Promise<readonly string[]> {
    try {
      const records = await this.#records(host, await this.#ipv6());
      this.#onQuery(records.length * recordBytes);
      const addresses = records.slice(0, maxAddresses).map((record) => record.address);
      const ttlSeconds = Math.min(...records.map((record) => record.ttl));
      const kept = Math.min(maxTtlSeconds, Math.max(minTtlSeconds, ttlSeconds));
      this.#known.set(host, addresses, { ttl: kept * 1000 });
      return addresses;
    } catch (error) {
      const failure = dnsFailure(host, error);
      this.#known.set(host, failure, { ttl: failureSeconds * 1000 });
      throw failure;
    }
  }

  /**
   * Asks for both families at once if both are useful, and one answer is enough. Otherwise, asks for IPv6 only if the name has
   * no IPv4, because a name that has only IPv6 differs from one that does not exist.
   */
  async #records(host: string, ipv6: boolean): Promise<{ address: string; ttl: number }[]> {
    const ask = (rrtype: "resolve4" | "resolve6") => {
      this.#onQuery(messageBytes + 2 * host.length);
      return this.#resolver[rrtype](host, { ttl: true });
    };
    if (!ipv6)
      return await ask("resolve4").catch(async (error: NodeJS.ErrnoException) => {
        if (error.code === "ENODATA") return await ask("resolve6").catch(() => Promise.reject(error));
        throw error;
      });
    const answers = await Promise.allSettled([ask("resolve4"), ask("resolve6")]);
    const records = answers.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
    if (records.length > 0) return records;
    throw (answers[0] as PromiseRejectedResult).reason;
  }
}

function dnsFailure(host: string, error: unknown): Failure {
  const code = (error as { code?: string } | null)?.code ?? "";
  if (code === "ENOTFOUND" || code === "ENODATA" || code === "EBADNAME") {
    return new Failure("dns-no-such-name", `${host} has no address (${code})`, { cause: error });
  }
  return new Failure("dns-no-answer", `no DNS server answered for ${host} (${code})`, { cause: error });
}
