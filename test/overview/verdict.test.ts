import { expect, it } from "vitest";
import { limitCodes } from "#coordinator/tell/overview/queue-api";
import { verdictOf } from "#coordinator/tell/overview/queue-words";
import { limitText, RunLimits } from "#ops/cli/up/follow-run";

it("names what is in the way of the most hosts", () => {
  expect(verdictOf([])).toEqual({ limitedBy: "nothing-due", hosts: 0, words: "nothing is due" });
  expect(
    verdictOf([
      { limit: "in-line", hosts: 2 },
      { limit: "crawl-delay", hosts: 3 },
      { limit: "crawler-full", hosts: 0 },
    ]).words,
  ).toBe("limited by 3 hosts' Crawl-delay");
  expect(verdictOf([{ limit: "back-off", hosts: 1 }]).words).toBe(
    "limited by 1 host's back-off after 429, 503 or no answer",
  );
});

it("names of several as frequent ones the one that can be helped", () => {
  const all = limitCodes.filter((limit) => limit !== "nothing-due").map((limit) => ({ limit, hosts: 5 }));

  expect(verdictOf(all.toReversed()).limitedBy).toBe("no-delegation");
  expect(verdictOf(all.toReversed().slice(0, 4)).limitedBy).toBe("slow-answers");
});

it("tells of a run what limited it most of the time, as it was at its worst", () => {
  const limits = new RunLimits();
  expect(limits.most()).toBeNull();
  for (const hosts of [1, 3, 2]) limits.add(verdictOf([{ limit: "crawl-delay", hosts }]));
  limits.add(verdictOf([{ limit: "crawler-full", hosts: 90 }]));

  expect(limitText(limits.most()!)).toBe("limited by 3 hosts' Crawl-delay, 75 % of the time");
});
