/** Turns by key: how many at a time, in which order, and who gives up waiting. */
import { describe, expect, it } from "vitest";
import { TurnQueue } from "#crawler/limits/host-gate";

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
  it("of one key come one after the other, in the order of asking; other keys do not wait", async () => {
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

  it("wait until the key is ready, and look again when it changes", async () => {
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

  it("are given up by who is called off or whose time is over, and pass to the next", async () => {
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

  it("that last too long no longer keep the next one waiting, and their end ends nothing else", async () => {
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

  it("of parties go to the one that has had least, in its order of asking", async () => {
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

  it("that last too long count for their party before they have ended", async () => {
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
