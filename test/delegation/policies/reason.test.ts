/** Reasons in plain words: everybody who reads them, from the log to `who`, sees these sentences. */
import { expect, it } from "vitest";
import { DelegationKnowledge } from "#coordinator/place/delegation/knowledge";
import { explainReason, parseReason } from "#coordinator/place/delegation/policies/reason";
import type { CrawlerId } from "#core/ids";
import { decisionOf, everyPair, id, line, placement, type RoundSetup, runRound } from "../rounds.ts";

const names = ["", "athens", "berlin", "cairo", "delhi"];
const nameOf = (crawlerId: CrawlerId) => names[crawlerId] ?? `crawler ${crawlerId}`;
const athensFirst = new DelegationKnowledge();
athensFirst.record(placement({ subnetKey: "s", holderKey: "h" }), id(1));
const target = { placement: placement({ subnetKey: "t", holderKey: "h" }) };
const nearest = { policy: "nearest", ...target, knowledge: athensFirst } as const;
const two = { answers: [70, 60], ...target };
const reasonOf = (setup: RoundSetup) => JSON.parse(JSON.stringify(runRound(setup).end.reason));

it.each<[string, RoundSetup, readonly (string | RegExp)[]]>([
  [
    "which crawlers the triangle inequality ruled out, and by which probe",
    { ...nearest, answers: [2, 98, 198, 298], peers: line },
    [
      "It was asked first, as the likeliest by past delegations nearby, and answered in 2 ms. " +
        "Ruled out by the triangle inequality, without asking: " +
        "berlin (at least 78.4 ms, since athens measured 2 ms and is 100 ms from it), " +
        "cairo (at least 158 ms, since athens measured 2 ms and is 200 ms from it), " +
        "delhi (at least 238 ms, since athens measured 2 ms and is 300 ms from it). " +
        "Nobody was left who could be nearer. " +
        "Runner-up: berlin (not asked, at most about 102 ms).",
    ],
  ],
  [
    "what one more probe was expected to save, and why that was too little",
    { ...nearest, answers: [6, 7], peers: everyPair(2, 10), parameters: { lambdaMs: 3 } },
    [
      /berlin, was expected to save 0\.\d+ ms, less than the 0\.2 ms that a probe must be worth \(λ is 3 ms; less is/,
    ],
  ],
  [
    "who failed to answer, and that it is tried again",
    { ...nearest, answers: ["timed out", "refused"] },
    [
      "Nobody answered, so the likeliest by past delegations nearby was taken",
      "It will be tried again.",
      "Asked, in this order: athens no answer (timed out), berlin no answer (refused).",
    ],
  ],
  [
    "that it was drawn at random",
    { ...two, policy: "random", random: 0 },
    ["Drawn at random from 2 crawlers, without a probe. Runner-up: berlin."],
  ],
  [
    "that it was the fastest of all",
    { ...two, policy: "exhaustive" },
    ["With 60 ms it was the fastest; every crawler was asked."],
  ],
  [
    "that nobody was under the threshold",
    { ...two, policy: "ipmicra" },
    ["Nobody was under the threshold of 50 ms."],
  ],
  [
    "that it has the company's other subnets",
    { ...two, policy: "ipmicra", knowledge: athensFirst },
    ["belong to this crawler alone"],
  ],
  [
    "that it was the first under the threshold",
    { ...two, policy: "ipmicra", answers: [9, 1] },
    ["It answered in 9 ms, the first under the threshold of 50 ms, found among all crawlers."],
  ],
  ["that it was the only crawler", { ...two, policy: "nearest", candidates: [2] }, ["only crawler"]],
  [
    "that no crawler could take it",
    { ...two, policy: "nearest", candidates: [] },
    ["No crawler could take the subnet"],
  ],
])("a reason says %s", (_, setup, words) => {
  const text = explainReason(reasonOf(setup), nameOf);

  for (const part of words)
    expect(text).toEqual(
      typeof part === "string" ? expect.stringContaining(part) : expect.stringMatching(part),
    );
});

it("explains anycast", () => {
  const [near, far] = [
    { crawlerId: 1, rttMs: 3 },
    { crawlerId: 4, rttMs: 4 },
  ];

  expect(explainReason({ type: "anycast", near, far, leastSumMs: 60, by: "light" }, nameOf)).toContain(
    "athens (3 ms) and delhi (4 ms) are so far apart that light in glass allows one machine no less than 60 ms",
  );
});

it("names at most eight ruled-out crawlers and counts the others, so that a large fleet's reason stays small", () => {
  const peers = Array.from({ length: 300 }, (_, a) => Array.from({ length: 300 }, (_, b) => 50 + a + b));

  const { reason } = decisionOf({ ...nearest, answers: new Array(300).fill(1), peers });

  expect(reason).toMatchObject({ type: "expected-gain", ruledOutCount: 299 });
  expect(reason.type === "expected-gain" && reason.ruledOut).toHaveLength(8);
  expect(JSON.stringify(reason).length).toBeLessThan(2000);
});

it("does not fail on what another version wrote", () => {
  expect([parseReason({ type: "by-horoscope" }), parseReason(null)]).toEqual([null, null]);
  expect(explainReason({ type: "random" }, nameOf)).toBe(
    "The reason was recorded in a form that this version does not know.",
  );
});
