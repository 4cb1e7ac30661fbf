/** How a coordinator detects that its database went back. */
import { expect, it } from "vitest";
import { type Epoch, firstNumberOf, whyWentBack } from "#coordinator/run/journal/epoch";

const epoch: Epoch = {
  ...{ epoch: 3, databaseId: "d", beganAt: new Date(0), cause: "created", words: "", replay: null },
  ...{ systemIdentifier: "71", timeline: 2 },
};
const server = { systemIdentifier: "71", timeline: 2, position: 5000n };
const lastLook = { epoch: 3, ...server };
const lastEntries = { epoch: 3, areKnown: true };
const well = { lastLook, lastEntries };

it.each([
  ["another server", epoch, { ...server, systemIdentifier: "72" }, well, "server"],
  ["another timeline", epoch, { ...server, timeline: 3 }, well, "timeline"],
  ["a log that is shorter", epoch, { ...server, position: 4999n }, well, "position"],
  [
    "entries that it does not have",
    epoch,
    server,
    { lastLook, lastEntries: { epoch: 3, areKnown: false } },
    "journal",
  ],
  [
    "an epoch that it does not know, by the last look",
    epoch,
    server,
    { lastLook: { ...lastLook, epoch: 4 }, lastEntries },
    "journal",
  ],
  [
    "an epoch that it does not know, by the journal",
    epoch,
    server,
    { lastLook, lastEntries: { epoch: 4, areKnown: true } },
    "journal",
  ],
] as const)("is detected by %s", (_, known, seen, witness, cause) => {
  expect(whyWentBack(known, seen, witness)?.cause).toBe(cause);
});

it.each([
  ["all is as it was", epoch, server, well],
  ["its log has grown", epoch, { ...server, position: 5001n }, well],
  [
    "nobody has looked yet",
    { ...epoch, systemIdentifier: null, timeline: null },
    server,
    { lastLook: null, lastEntries: null },
  ],
  ["the server keeps its identity to itself", epoch, { ...server, systemIdentifier: null }, well],
  [
    "another coordinator has begun the epoch, on another log",
    epoch,
    { ...server, position: 1n },
    { lastLook: { ...lastLook, epoch: 2 }, lastEntries: { epoch: 2, areKnown: false } },
  ],
] as const)("is not detected where %s", (_, known, seen, witness) => {
  expect(whyWentBack(known, seen, witness)).toBeNull();
});

it("gives numbers above all earlier ones, within JavaScript's safe integers", () => {
  const [one, next] = [
    firstNumberOf(new Date("2030-01-01T00:00:00.900Z")),
    firstNumberOf(new Date("2030-01-01T00:00:01Z")),
  ];

  expect(next - one).toBe(1_000_000);
  expect(Number.isSafeInteger(firstNumberOf(new Date("2200-01-01")))).toBe(true);
});
