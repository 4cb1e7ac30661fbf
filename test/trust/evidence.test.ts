/** Evidence from one crawler's comparisons. */
import { describe, expect, it } from "vitest";
import {
  type CheckOutcome,
  defaultTrustRule,
  evidenceOf,
  honestRates,
} from "#coordinator/crawl/trust/evidence";
import { asCrawlerId, type HostHash } from "#core/ids";

const nothing: ReadonlySet<HostHash> = new Set();
const rates = honestRates([], nothing);
const context = { rates, rule: defaultTrustRule };

const on = (host: number, outcome: CheckOutcome["outcome"]): CheckOutcome => ({
  crawlerId: asCrawlerId(1),
  hostHash: String(host) as HostHash,
  outcome,
});

/** A host with two agreeing pages and one that stands alone. */
const altered = (host: number) => [on(host, "agree"), on(host, "alone"), on(host, "agree")];
const honest = (host: number) => [on(host, "agree"), on(host, "agree")];
const hosts = (count: number) => Array.from({ length: count }, (_, index) => index);

describe("evidence", () => {
  it("grows with every host on which some pages of the crawler stand alone", () => {
    const scores = [1, 2, 3].map(
      (count) => evidenceOf(hosts(count).flatMap(altered), nothing, context).score,
    );

    expect(scores[0]).toBeGreaterThan(2);
    expect(scores[1]).toBeGreaterThan(scores[0]!);
    expect(scores[2]).toBeGreaterThan(scores[1]!);
  });

  it("passes the threshold after four such hosts in a row", () => {
    const { score, suspicion, against } = evidenceOf(hosts(4).flatMap(altered), nothing, context);

    expect(score).toBeGreaterThan(defaultTrustRule.threshold);
    expect(suspicion).toBe("alone");
    expect(against).toHaveLength(4);
  });

  it("does not grow with further pages of one host", () => {
    const once = evidenceOf(altered(1), nothing, context).score;
    const often = evidenceOf([...altered(1), ...altered(1), ...altered(1)], nothing, context).score;

    expect(often).toBeLessThan(once);
  });

  it("shrinks with every agreement, down to 0", () => {
    const years = hosts(500).flatMap(honest);

    expect(evidenceOf([...altered(1000), ...years], nothing, context).score).toBe(0);
  });

  it("is not outweighed by earlier years of honesty", () => {
    const years = hosts(500).flatMap(honest);
    const lies = [1000, 1001, 1002, 1003].flatMap(altered);

    const late = evidenceOf([...years, ...lies], nothing, context);

    expect(late.score).toBeGreaterThan(defaultTrustRule.threshold);
    expect(late.since).toBeGreaterThanOrEqual(years.length);
  });

  it("ignores hosts that differ by place or by visit", () => {
    const silent = new Set(hosts(10).map((host) => String(host) as HostHash));

    expect(evidenceOf(hosts(10).flatMap(altered), silent, context).score).toBe(0);
  });

  it("assumes that a host without any agreement shows this place something else", () => {
    const elsewhere = hosts(2).flatMap((host) => [on(host, "alone"), on(host, "alone")]);
    const others = hosts(12).flatMap((host) => honest(100 + host));

    expect(evidenceOf([...elsewhere, ...others], nothing, context).score).toBeLessThan(1);
  });

  it("suffices when the crawler agrees with nobody on hardly any host", () => {
    const { score, suspicion } = evidenceOf(
      hosts(5).map((host) => on(host, "alone")),
      nothing,
      context,
    );

    expect([score > defaultTrustRule.threshold, suspicion]).toEqual([true, "wholly"]);
  });

  it("weighs less when other crawlers stand alone as often", () => {
    const restless = Array.from({ length: 12 }, () =>
      hosts(100).flatMap((host) => (host % 10 === 0 ? altered(host) : honest(host))),
    );
    const own = hosts(4).flatMap(altered);

    const inRestless = evidenceOf(own, nothing, { ...context, rates: honestRates(restless, nothing) });

    expect(inRestless.score).toBeLessThan(evidenceOf(own, nothing, context).score / 2);
  });
});
