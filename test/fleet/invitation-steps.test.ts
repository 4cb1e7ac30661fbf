/** The progress of an invitation, and what blocks the next step. */
import { expect, it } from "vitest";
import { type InvitationFacts, invitationProgress } from "#coordinator/tell/fleet/invitation-steps";

const at = new Date("2030-01-01T12:00:00Z");
const fresh: InvitationFacts = {
  ...{ invitationId: 7, name: "athens", createdAt: at, expiresAt: at, isOpen: true, withdrawnAt: null },
  ...{ downloadedAt: null, joinedAt: null, ranAt: null, isConnected: null, removedAt: null },
  ...{ awayBecause: null, firstPageBy: null, hasSubnets: false },
};
const downloaded = { ...fresh, downloadedAt: at };
const joined = { ...downloaded, joinedAt: at, isOpen: false };
const running = { ...joined, ranAt: at, isConnected: true };
const done = (facts: InvitationFacts) =>
  invitationProgress(facts)
    .steps.filter(({ isDone }) => isDone)
    .map(({ name }) => name);

it.each([
  ["fresh", fresh, [], /has not run the command yet/],
  ["downloaded", downloaded, ["downloaded"], /token has not been used/],
  ["joined", joined, ["downloaded", "checked", "joined"], /was not started/],
  [
    "joined where nearcrawl was installed",
    { ...joined, downloadedAt: null },
    ["downloaded", "checked", "joined"],
    /not started/,
  ],
  [
    "joined and waiting",
    { ...joined, awayBecause: "it waits for a release" },
    ["downloaded", "checked", "joined"],
    /it waits for a release/,
  ],
  ["running", running, ["downloaded", "checked", "joined", "running"], /connected and measuring/],
  [
    "running with subnets",
    { ...running, hasSubnets: true },
    ["downloaded", "checked", "joined", "running"],
    /nearcrawl queue/,
  ],
  [
    "away again",
    { ...running, isConnected: false, awayBecause: "no heartbeat" },
    ["downloaded", "checked", "joined", "running"],
    /not connected: no heartbeat/,
  ],
] as const)("%s", (_, facts, steps, words) => {
  const progress = invitationProgress(facts);

  expect(done(facts)).toEqual(steps);
  expect(progress.waitsFor).toMatch(words);
  expect(progress.isOver).toBe(false);
});

it("ends with the first page, or when no further step is possible", () => {
  const crawling = invitationProgress({ ...running, firstPageBy: at });
  const over = [
    { ...fresh, isOpen: false, withdrawnAt: at },
    { ...fresh, isOpen: false },
    { ...running, removedAt: at },
  ].map((facts) => invitationProgress(facts));

  expect([crawling.waitsFor, crawling.isOver]).toEqual([null, false]);
  expect(over.map(({ isOver }) => isOver)).toEqual([true, true, true]);
  expect(over.map(({ waitsFor }) => waitsFor)).toEqual([
    expect.stringContaining("withdrawn"),
    expect.stringContaining("expired"),
    expect.stringContaining("fleet reinvite athens"),
  ]);
});
