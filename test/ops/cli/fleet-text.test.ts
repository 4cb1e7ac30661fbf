/** The fleet as people read it: what the figures are, without a database. */
import { expect, it } from "vitest";
import type { FleetEntry } from "#coordinator/fleet/fleet-entry";
import { noIdentity } from "#coordinator/fleet/fleet-list-reads";
import { fleetText } from "#ops/cli/fleet-text";

const north: FleetEntry = {
  crawlerId: 1,
  name: "north",
  place: null,
  country: null,
  state: "online",
  offlineReason: null,
  lastSeenAt: null,
  connectedAt: null,
  revoked: false,
  softwareVersion: null,
  subnets: 3,
  unmeasured: 0,
  meanRttMs: null,
  openLeases: 1,
  pagesToday: 500,
  bytesToday: 9_000_000,
  bodyBytesToday: 40_000_000,
  shippedBytesToday: 1_250_000,
  pagesPerDay: 1000,
  bytesPerDay: 1e12,
  granted: { pagesPerDay: null, bytesPerDay: null },
  partnerAllows: { pagesPerDay: 1000, bytesPerDay: 1e12 },
  draining: null,
  joiningSince: null,
  trust: "trusted",
  incidents: 0,
  release: null,
  identity: noIdentity,
};

it("tells what was shipped, and which part of the pages' bytes that is", () => {
  const text = fleetText([north]);

  expect(text).toMatch(/north +online +3 +500 +1000 +9 MB +1 TB +1\n/);
  expect(text).toMatch(/north +1\.25 MB = 1\/32\.0/);
  for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
});

it("tells how many of a crawler's subnets nobody has been compared for", () => {
  const joining = { ...north, unmeasured: 2, joiningSince: new Date(0) };

  expect(fleetText([{ ...north, unmeasured: 2 }])).toContain(" 1  2 of its subnets not measured yet\n");
  expect(fleetText([joining])).toContain("joining: being assigned the nearest subnets; 2 of its subnets");
});

it("tells which release a crawler's dock runs", () => {
  const docked = { ...north, release: { version: "1.4.0", dockVersion: "1.0.0", policy: "newest" } };

  expect(fleetText([docked])).toMatch(/north .* = 1\/32\.0 +1\.4\.0 +trusted\n/);
});

it("tells no part where nothing, or more than was fetched, was shipped", () => {
  const idle = { ...north, name: "idle", bodyBytesToday: 0, shippedBytesToday: 0 };
  const unchanged = { ...north, name: "still", bodyBytesToday: 0, shippedBytesToday: 9000 };

  const text = fleetText([idle, unchanged]);

  expect(text).toMatch(/idle .* 0 B +trusted\n/);
  expect(text).toMatch(/still .* 9 kB +trusted\n/);
});

it("tells in words whether a crawler is believed", () => {
  const liar = { ...north, name: "liar", trust: "distrusted" as const };
  const fresh = { ...north, name: "fresh", trust: "not-compared" as const };

  const text = fleetText([liar, fresh]);

  expect(text).toMatch(/liar .* not trusted\n/);
  expect(text).toMatch(/fresh .* not compared yet\n/);
});

it("tells who a crawler is, where it was seen, why it was away, and what it said before", () => {
  const identity = {
    ...noIdentity,
    publicKey: "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
    keySince: new Date("2030-01-01T00:00:00Z"),
    signingKey: {
      ...{ publicKey: "x", keyId: "kPrK", since: new Date("2030-01-03T00:00:00Z") },
      until: new Date("2030-02-09T00:00:00Z"),
    },
    scopes: ["probe"] as const,
    seenAddress: "192.0.2.7",
    addressBefore: "198.51.100.7",
    addressChangedAt: new Date("2030-01-02T00:00:00Z"),
    lastAway: { since: new Date("2030-01-02T03:04:05Z"), reason: "vanished" },
    lastEnd: { at: new Date("2030-01-02T03:03:00Z"), reason: "killed\u001b[31m: out of memory" },
    copiedAt: new Date("2030-01-02T04:00:00Z"),
  };

  const text = fleetText([
    { ...north, identity },
    { ...north, name: "south" },
  ]);

  expect(text).toMatch(
    /north +11qYAYKxCrfV +2030-01-01 +2030-01-03 +192\.0\.2\.7 \(198\.51\.100\.7 until 2030-01-02\) +2030-01-02 03:04 vanished +2030-01-02 03:03 killed \[31m: out of memory +ITS FOLDER WAS COPIED: nearcrawl fleet incidents --name north; measures only\n/,
  );
  expect(text.match(/south/g)).toHaveLength(2);
});
