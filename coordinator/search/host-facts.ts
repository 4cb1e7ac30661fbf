/** Where hosts lie and whether they have opted out, kept for a minute: the same hosts come up in many searches. */
import { LRUCache } from "lru-cache";
import type { Pool } from "pg";
import type { HostHash } from "#core/ids";

export interface HostFacts {
  /** Of the subnet that its address lies in; null: not known. */
  readonly country: string | null;
  readonly hasOptedOut: boolean;
}

/** What is shown is looked at once more (read-pages.ts); this only decides what is counted. */
const keptMs = 60_000;
const keptHosts = 50_000;

export class HostFactsCache {
  readonly #pool: Pool;
  readonly #facts: LRUCache<HostHash, HostFacts>;

  constructor(pool: Pool, nowMs: () => number) {
    this.#pool = pool;
    this.#facts = new LRUCache({ max: keptHosts, ttl: keptMs, ttlResolution: 0, perf: { now: nowMs } });
  }

  async of(hosts: readonly HostHash[]): Promise<Map<HostHash, HostFacts>> {
    const found = new Map<HostHash, HostFacts>();
    const missing: HostHash[] = [];
    for (const host of hosts) {
      const facts = this.#facts.get(host);
      if (facts === undefined) missing.push(host);
      else found.set(host, facts);
    }
    for (const [host, facts] of await this.#read(missing)) {
      this.#facts.set(host, facts);
      found.set(host, facts);
    }
    return found;
  }

  async #read(hosts: readonly HostHash[]): Promise<[HostHash, HostFacts][]> {
    if (hosts.length === 0) return [];
    const { rows } = await this.#pool.query<{
      host_hash: HostHash;
      country: string | null;
      opted_out: boolean;
    }>({
      name: "search-hosts",
      text: `select h.host_hash, s.country, h.opt_out_id is not null as opted_out
        from frontier_host h
        left join subnet s using (subnet_id)
        where h.host_hash = any($1::bigint[])`,
      values: [hosts],
    });
    return rows.map((row) => [row.host_hash, { country: row.country, hasOptedOut: row.opted_out }]);
  }
}
