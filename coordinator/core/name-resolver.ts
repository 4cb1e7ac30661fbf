/**
 * DNS for the coordinator: A and AAAA records with their real TTLs through c-ares. getaddrinfo would block a pool of four
 * threads and hide the TTL.
 */
import { Resolver } from "node:dns/promises";
import { parseAddress } from "./ip/address.ts";

const minTtlSeconds = 30;
const maxTtlSeconds = 86_400;
const maxAddresses = 32;

export function createNameResolver(options: {
  servers: readonly string[];
  timeoutMs?: number;
}): NameResolver {
  const resolver = new Resolver({ timeout: options.timeoutMs ?? 3000, tries: 2 });
  if (options.servers.length > 0) resolver.setServers(options.servers);
  return {
    async resolve(host) {
      if (parseAddress(host)) return { addresses: [host], ttlSeconds: maxTtlSeconds };
      const [v4, v6] = await Promise.allSettled([
        resolver.resolve4(host, { ttl: true }),
        resolver.resolve6(host, { ttl: true }),
      ]);
      const records = [v4, v6].flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []));
      if (records.length === 0) return { failed: whyNot([v4, v6]) };
      const ttlSeconds = Math.min(...records.map((record) => record.ttl));
      return {
        addresses: records.slice(0, maxAddresses).map((record) => record.address),
        ttlSeconds: Math.min(maxTtlSeconds, Math.max(minTtlSeconds, ttlSeconds)),
      };
    },
  };
}

/** So many consecutive names without an answer are neither chance nor the fault of one domain. */
const leastUnanswered = 5;

/** Wraps a resolver and records since when it has answered nothing, not even that a name has no address. */
export class WatchedResolver implements NameResolver {
  readonly #resolver: NameResolver;
  readonly #now: () => Date;
  readonly #unanswered = new Set<string>();
  #since: Date | null = null;
  #words = "";

  constructor(resolver: NameResolver, now: () => Date) {
    this.#resolver = resolver;
    this.#now = now;
  }

  /** Null as long as no outage of the resolver is known. */
  get silent(): { readonly words: string; readonly since: Date } | null {
    if (this.#since === null || this.#unanswered.size < leastUnanswered) return null;
    return { words: this.#words, since: this.#since };
  }

  async resolve(host: string): ReturnType<NameResolver["resolve"]> {
    const answer = await this.#resolver.resolve(host);
    if (parseAddress(host)) return answer;
    if (!("failed" in answer) || answers.has(answer.failed)) {
      this.#unanswered.clear();
      this.#since = null;
    } else {
      this.#since ??= this.#now();
      this.#words = answer.failed;
      if (this.#unanswered.size < leastUnanswered) this.#unanswered.add(host);
    }
    return answer;
  }
}

const noName = "the name does not exist";
const noAddress = "the name has no address";
const answers: ReadonlySet<string> = new Set([noName, noAddress]);

/** A failed query takes precedence over the other query's "no address", because the failed one might have found an address. */
function whyNot(answers: readonly PromiseSettledResult<unknown>[]): string {
  const codes = answers.map((answer) =>
    answer.status === "rejected" ? (answer.reason as { code?: string }).code : undefined,
  );
  const code = codes.find((one) => one !== undefined && one !== "ENODATA");
  switch (code) {
    case "ENOTFOUND":
      return noName;
    case undefined:
      return noAddress;
    case "ETIMEOUT":
      return "the name servers did not answer in time";
    case "ESERVFAIL":
      return "the name servers failed";
    case "EREFUSED":
      return "the name servers refused to answer";
    case "ECONNREFUSED":
      return "the configured name servers cannot be reached";
    default:
      return `the look-up failed (${code})`;
  }
}

// Looks up TXT records (RFC 1035 section 3.3.14) through c-ares, as above for addresses.

const maxRecords = 64;

/** Returns the joined strings of each record, or an empty list if there are none or no server answers. Never rejects. */
export function createTextResolver(options: {
  readonly servers: readonly string[];
  readonly timeoutMs?: number;
}): (name: string) => Promise<string[]> {
  const resolver = new Resolver({ timeout: options.timeoutMs ?? 3000, tries: 2 });
  if (options.servers.length > 0) resolver.setServers(options.servers);
  return async (name) => {
    const records = await resolver.resolveTxt(name).catch(() => []);
    return records.slice(0, maxRecords).map((strings) => strings.join(""));
  };
}

export interface NameResolver {
  /** Returns the addresses (IPv4 first) with the smallest TTL, or why there are none. An address resolves to itself. */
  resolve(host: string): Promise<{ addresses: readonly string[]; ttlSeconds: number } | { failed: string }>;
}
