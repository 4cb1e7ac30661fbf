/** Knowledge of hosts outlives the process, and a damaged file does no harm. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { steadyNowMs } from "#crawler/core/local-time";
import { HostGates, TurnQueue } from "#crawler/limits/host-gate";
import { temporaryFolder } from "../../support/temporary-folder.ts";

describe("knowledge of hosts", () => {
  let home: string;
  let warnings: string[];
  beforeEach(() => {
    home = temporaryFolder("nearcrawl-gates-");
    warnings = [];
  });

  const warn = (_fields: object, words: string) => void warnings.push(words);
  const newGates = () => new HostGates({ floorMs: 1000, responseTimeFactor: 5, kept: { home, warn } });
  const file = () => join(home, "host-paces.json");

  async function answered(
    gates: HostGates,
    host: string,
    status: number | null,
    retryAfterSeconds: number | null,
    address: string | null = null,
  ) {
    const bounds = { signal: new AbortController().signal, endsAtMs: steadyNowMs() + 60_000 };
    const turn = await gates.take({ host, address }, bounds);
    turn!.end({ status, tookMs: 40, retryAfterSeconds }, null);
  }

  describe("after a restart", () => {
    it("a host still rests for as long as it asked, and its back-off still grows", async () => {
      const before = newGates();
      await answered(before, "a.example", 429, 7200);
      before.crawlDelay("b.example", 20);
      before.close();

      const after = newGates();

      expect(after.waitMs("a.example", Date.now())).toBeGreaterThan(7_190_000);
      expect(after.report("a.example")).toMatchObject({ backOffMs: 60_000 });
      expect(after.report("b.example")).toMatchObject({ crawlDelayMs: 20_000 });
      expect(warnings).toEqual([]);
    });

    it("a domain with slow hosts still comes after its neighbours at an address", async () => {
      const address = "192.0.2.9";
      const ask = async (gates: HostGates, host: string, tookMs: number) => {
        const bounds = { signal: new AbortController().signal, endsAtMs: Date.now() + 60_000 };
        const turn = await gates.take({ host, address }, bounds);
        return () => turn!.end({ status: 200, tookMs, retryAfterSeconds: null }, address);
      };
      const quick = { floorMs: 1, responseTimeFactor: 0.001, kept: { home, warn } };
      const before = new HostGates(quick);
      (await ask(before, "h1.slow.example", 9000))();
      (await ask(before, "v1.quick.example", 10))();
      before.close();

      const after = new HostGates(quick);
      const hold = await ask(after, "third.example", 1);
      const begun: string[] = [];
      const waiting = ["h2.slow.example", "v2.quick.example", "v3.quick.example"].map(async (host) => {
        const end = await ask(after, host, 10);
        begun.push(host);
        end();
      });
      // All three are queued before the address is free.
      await new Promise(setImmediate);
      hold();
      await Promise.all(waiting);
      after.close();

      expect(begun).toEqual(["v2.quick.example", "v3.quick.example", "h2.slow.example"]);
    });

    it("the tolerated rates of a host and of its address are kept", async () => {
      const before = newGates();
      const address = "192.0.2.7";
      for (const host of ["a.example", "b.example", "c.example"])
        await answered(before, host, 429, 0, address);
      const told = before.report("a.example")!.tolerated!;
      before.close();

      const after = newGates();
      const report = after.report("a.example");
      await answered(after, "d.example", 200, null, address);
      const startMs = Date.now();
      await answered(after, "e.example", 200, null, address);

      expect(told).toMatchObject({ perHour: 1800, limitedBy: "refused", refusedPerHour: 3600 });
      expect(report!.tolerated).toMatchObject({ ...told, refusedMsAgo: expect.any(Number) });
      expect(Date.now() - startMs).toBeGreaterThan(450);
      expect(after.slowHosts(10)).toEqual([]);
      expect(after.enter("a.example")).toBe(true);
      expect(after.enter("a.example")).toBe(false);
      expect(after.slowHosts(10)[0]!.words).toMatch(
        /^30 requests per minute at most: it answered 429 or 503 at 60 requests per minute$/,
      );
      after.close();
    });

    it("the file of release 0.2.0, which has no rates, is read, and release 0.2.0 can read the new one", () => {
      const old = {
        notBeforeMs: Date.now() + 3_600_000,
        crawlDelayMs: 0,
        backOffMs: 60_000,
        backedOffAtMs: Date.now(),
      };
      const times = { usualMs: 40, answers: 5, lastMs: 40, stretch: 1, failures: 0 };
      writeFileSync(file(), JSON.stringify({ version: 1, hosts: [{ host: "a.example", ...old, ...times }] }));

      const gates = newGates();
      expect(gates.waitMs("a.example", Date.now())).toBeGreaterThan(3_590_000);
      gates.close();
      expect(JSON.parse(readFileSync(file(), "utf8")).hosts).toMatchObject([{ stretch: 1 }]);
    });

    it("a clock that is briefly a day ahead or behind delays no host, nor does a file written meanwhile", async () => {
      const [real, start] = [Date.now, performance.now()];
      const gates = newGates();
      try {
        for (const hours of [24, -24]) {
          Date.now = () => real() + hours * 3_600_000;
          await answered(gates, `a${hours}.example`, 200, null);
          Date.now = real;
          expect(gates.waitMs(`a${hours}.example`, Date.now())).toBeLessThan(2000);
        }
        Date.now = () => real() + 86_400_000;
        await answered(gates, "b.example", 429, 60);
        gates.close();
      } finally {
        Date.now = real;
      }
      expect(JSON.parse(readFileSync(file(), "utf8")).hosts[0].notBeforeMs).toBeGreaterThan(
        Date.now() + 80_000_000,
      );

      const waitMs = newGates().waitMs("b.example", Date.now());

      expect(waitMs).toBeLessThanOrEqual(61_000);
      expect(waitMs).toBeGreaterThan(50_000 - (performance.now() - start));
    });

    it.each([
      ["torn", (whole: string) => whole.slice(0, whole.length / 2)],
      ["somebody else's", () => '{"version":1,"hosts":{"a":1}}'],
      ["larger than ours can be", (whole: string) => whole + " ".repeat(5 * 1024 * 1024)],
    ])("a file that is %s is reported and ignored", async (_what, damage) => {
      const before = newGates();
      await answered(before, "a.example", 429, 7200);
      before.close();
      writeFileSync(file(), damage(readFileSync(file(), "utf8")));

      const after = newGates();

      expect(after.waitMs("a.example", Date.now())).toBe(0);
      expect(warnings).toEqual(["what is kept in host-paces.json is ignored"]);
    });

    it("impossible paces are left out, the others count", async () => {
      const before = newGates();
      await answered(before, "a.example", 429, 7200);
      before.close();
      const content = JSON.parse(readFileSync(file(), "utf8"));
      const [pace] = content.hosts;
      content.hosts.push(
        { ...pace, host: "b.example", notBeforeMs: 1e300 },
        { ...pace, host: "c.example", crawlDelayMs: -5 },
        { ...pace, host: "d.example", rate: { ...pace.rate, perHour: 1e9 } },
        { host: "e.example" },
        null,
      );
      writeFileSync(file(), JSON.stringify(content));

      const after = newGates();

      const waits = ["a", "b", "c", "d", "e"].map((name) => after.waitMs(`${name}.example`, Date.now()) > 0);
      expect(waits).toEqual([true, false, false, false, false]);
    });

    it("a folder that cannot be written is reported once", () => {
      const gates = new HostGates({
        floorMs: 0,
        responseTimeFactor: 0,
        kept: { home: join(file(), "below-a-file"), warn },
      });
      writeFileSync(file(), "");

      gates.crawlDelay("a.example", 1);
      gates.close();
      gates.crawlDelay("a.example", 2);
      gates.close();

      expect(warnings).toEqual(["what is kept in host-paces.json cannot be written"]);
    });
  });
});

// Turns by key: how many at a time, in which order, and who gives up waiting.

const never = () => 0;
const patient = () => ({ signal: new AbortController().signal, endsAtMs: Date.now() + 60_000 });

/** Records the names in the order of their turns. */
function taker(queue: TurnQueue) {
  const begun: string[] = [];
  const take = async (name: string, key: string, bounds = patient()) => {
    const end = await queue.take(key, bounds);
    if (end !== null) begun.push(name);
    return end;
  };
  return { begun, take };
}

describe("turns", () => {
  it("of one key are taken one after another, in the order of asking; other keys do not wait", async () => {
    const { begun, take } = taker(new TurnQueue({ atATime: 1, readyAtMs: never }));

    const first = await take("first", "a");
    const second = take("second", "a");
    const third = take("third", "a");
    const elsewhere = await take("elsewhere", "b");
    expect(begun).toEqual(["first", "elsewhere"]);
    first!();
    (await second)!();
    (await third)!();
    elsewhere!();

    expect(begun).toEqual(["first", "elsewhere", "second", "third"]);
  });

  it("may be several at a time", async () => {
    const { begun, take } = taker(new TurnQueue({ atATime: 2, readyAtMs: never }));

    const ends = [await take("first", "a"), await take("second", "a")];
    const third = take("third", "a");
    expect(begun).toEqual(["first", "second"]);
    ends[1]!();

    expect(await third).not.toBeNull();
    expect(begun).toEqual(["first", "second", "third"]);
  });

  it("wait until the key is ready, and check again when it changes", async () => {
    let readyAtMs = Date.now() + 3_600_000;
    const queue = new TurnQueue({ atATime: 1, readyAtMs: () => readyAtMs });
    const waiting = queue.take("a", patient());

    readyAtMs = Date.now() + 30;
    queue.changed("a");
    const end = await waiting;

    expect(end).not.toBeNull();
    // Node's timers use another clock, which may be a millisecond ahead.
    expect(Date.now()).toBeGreaterThanOrEqual(readyAtMs - 1);
  });

  it("pass to the next one when they are cancelled or their time is over", async () => {
    const { begun, take } = taker(new TurnQueue({ atATime: 1, readyAtMs: never }));
    const abort = new AbortController();

    const first = await take("first", "a");
    const calledOff = take("called off", "a", { ...patient(), signal: abort.signal });
    const late = take("late", "a", { ...patient(), endsAtMs: Date.now() + 20 });
    const next = take("next", "a");
    abort.abort();

    expect([await calledOff, await late]).toEqual([null, null]);
    first!();
    expect(await next).not.toBeNull();
    expect(begun).toEqual(["first", "next"]);
  });

  it("that last too long no longer delay the next one, and their end ends nothing else", async () => {
    const { begun, take } = taker(new TurnQueue({ atATime: 1, readyAtMs: never, longestMs: 20 }));

    const stuck = await take("stuck", "a");
    const second = await take("second", "a");
    const third = take("third", "a");
    stuck!();
    await take("elsewhere", "b");

    expect(begun).toEqual(["stuck", "second", "elsewhere"]);
    second!();
    expect(await third).not.toBeNull();
  });

  it("of parties go to the one that has had the least, in its order of asking", async () => {
    const had: Record<string, number> = { slow: 9000, quick: 0 };
    const queue = new TurnQueue({ atATime: 1, readyAtMs: never, hadMs: (_key, party) => had[party]! });
    const begun: string[] = [];
    const take = async (name: string, party: string) => {
      const end = await queue.take("a", patient(), party);
      begun.push(name);
      had[party]! += party === "slow" ? 9000 : 4000;
      end!();
    };
    const hold = await queue.take("a", patient(), "slow");

    const all = [take("slow 1", "slow"), take("slow 2", "slow")];
    all.push(...[1, 2, 3].map(async (n) => await take(`quick ${n}`, "quick")));
    hold!();
    await Promise.all(all);

    expect(begun).toEqual(["quick 1", "quick 2", "quick 3", "slow 1", "slow 2"]);
  });

  it("that last too long count towards their party before they end", async () => {
    const queue = new TurnQueue({ atATime: 1, readyAtMs: never, longestMs: 20, hadMs: () => 0 });
    const begun: string[] = [];
    const take = async (name: string, party: string) => {
      const end = await queue.take("a", patient(), party);
      begun.push(name);
      end!();
    };
    await queue.take("a", patient(), "hanging");

    await Promise.all([take("hanging", "hanging"), take("other", "other")]);

    expect(begun).toEqual(["other", "hanging"]);
  });
});
