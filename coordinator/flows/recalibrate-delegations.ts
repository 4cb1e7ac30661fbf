/**
 * Recalibration (paper section 4.4): hosts that were fetched lately are held against their own past; those
 * that turned slow have their subnet probed anew. A subnet that was probed for this reason is left alone for
 * a while, since a site that itself got slower would otherwise be probed with every fetch.
 */
import { judgeFetchTimes, type RecalibrationRule } from "#core/delegation/recalibration";
import { urlKeyOf } from "#core/frontier/url-key";
import type { HostHash, SubnetId } from "#core/ids";
import type { CoordinatorState } from "./coordinator-state.ts";
import type { ResultStore } from "./ports.ts";
import type { ResultBatch } from "./take-results.ts";

export interface RecalibrationPorts {
  readonly results: Pick<ResultStore, "recentFetches">;
  readonly state: CoordinatorState;
  readonly now: () => Date;
}

type RecentFetch = Awaited<ReturnType<ResultStore["recentFetches"]>>[number];

/** Fetches of a host that are looked at: enough for a median, few enough to follow a change. */
const historyLength = 30;
const coolDownMs = 3_600_000;
/** Hosts looked at in one pass; the rest waits for the next. */
const hostsPerPass = 2000;

export class RecalibrationQueue {
  readonly #ports: RecalibrationPorts;
  readonly #rule: RecalibrationRule;
  readonly #hosts = new Set<HostHash>();
  readonly #probedAtMs = new Map<SubnetId, number>();

  constructor(ports: RecalibrationPorts, rule: RecalibrationRule) {
    this.#ports = ports;
    this.#rule = rule;
  }

  /** Results came in: their hosts are looked at in the next pass. */
  note(batch: ResultBatch): void {
    for (const { result } of batch.results) {
      const key = urlKeyOf(result.url);
      if (typeof key !== "string") this.#hosts.add(key.hostHash);
    }
  }

  /** Subnets to probe anew, because a host in them turned slow. */
  async findSlow(): Promise<SubnetId[]> {
    const hosts = [...this.#hosts].slice(0, hostsPerPass);
    for (const host of hosts) this.#hosts.delete(host);
    if (hosts.length === 0) return [];
    const fetches = await this.#ports.results.recentFetches(hosts, historyLength);
    const slow = new Set<SubnetId>();
    for (const [subnetId, history] of this.#historiesByOwner(fetches)) {
      const verdicts = timeKinds.map((kind) => judgeFetchTimes(timesOf(history, kind), this.#rule).verdict);
      if (verdicts.includes("probe-again")) slow.add(subnetId);
    }
    return [...slow].filter((subnetId) => this.#mayProbe(subnetId));
  }

  /**
   * One history a host, of the crawler that owns its subnet now, since the last fetch by another: after a
   * move the past starts anew, also when the subnet comes back.
   */
  #historiesByOwner(fetches: readonly RecentFetch[]): [SubnetId, RecentFetch[]][] {
    const histories = new Map<HostHash, { subnetId: SubnetId; history: RecentFetch[] }>();
    for (const fetch of fetches) {
      if (fetch.subnetId === null) continue;
      if (this.#ports.state.delegationOf(fetch.subnetId)?.crawlerId !== fetch.crawlerId) {
        histories.delete(fetch.hostHash);
        continue;
      }
      const known = histories.get(fetch.hostHash);
      if (known) known.history.push(fetch);
      else histories.set(fetch.hostHash, { subnetId: fetch.subnetId, history: [fetch] });
    }
    return [...histories.values()].map(({ subnetId, history }) => [subnetId, history]);
  }

  #mayProbe(subnetId: SubnetId): boolean {
    const nowMs = this.#ports.now().getTime();
    for (const [known, atMs] of this.#probedAtMs)
      if (nowMs - atMs > coolDownMs) this.#probedAtMs.delete(known);
    if (this.#probedAtMs.has(subnetId)) return false;
    this.#probedAtMs.set(subnetId, nowMs);
    return true;
  }
}

/** Connect times follow the path alone; first bytes come with every fetch but contain the server. */
const timeKinds = ["connectMs", "firstByteMs"] as const;

function timesOf(history: readonly RecentFetch[], kind: (typeof timeKinds)[number]): number[] {
  return history.map((fetch) => fetch[kind]).filter((timeMs) => timeMs !== null);
}
