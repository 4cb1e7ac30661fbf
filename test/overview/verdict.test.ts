import { expect, it } from "vitest";
import { limitCodes } from "#coordinator/tell/overview/queue-api";
import { verdictOf } from "#coordinator/tell/overview/queue-words";
import { limitText, RunLimits } from "#ops/cli/up/follow-run";

it("the verdict names what limits most hosts", () => {
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

it("of equal limits the verdict names the one that can be helped", () => {
  const all = limitCodes.filter((limit) => limit !== "nothing-due").map((limit) => ({ limit, hosts: 5 }));

  expect(verdictOf(all.toReversed()).limitedBy).toBe("no-delegation");
  expect(verdictOf(all.toReversed().slice(0, 4)).limitedBy).toBe("slow-answers");
});

it("a run's limit is what limited it most of the time, with its worst count", () => {
  const limits = new RunLimits();
  expect(limits.most()).toBeNull();
  for (const hosts of [1, 3, 2]) limits.add(verdictOf([{ limit: "crawl-delay", hosts }]));
  limits.add(verdictOf([{ limit: "crawler-full", hosts: 90 }]));

  expect(limitText(limits.most()!)).toBe("limited by 3 hosts' Crawl-delay, 75 % of the time");
});
