/** What reveals a copied folder, and what does not. Tickets are named by the welcome that issued them. */
import { expect, test } from "vitest";
import {
  type FolderArrival,
  type FolderVerdict,
  judgeFolder,
  type KnownFolder,
} from "#coordinator/place/crawlers/identity";

const start = Date.parse("2030-01-01T12:00:00Z");
const nobody: KnownFolder = { ticket: null, ticketBefore: null, arrivals: [] };

interface Shown {
  readonly ticket: string | null;
  readonly instanceId?: string;
  readonly address?: string;
  readonly hour?: number;
}

/** Judges the arrivals in turn, which get the tickets 1, 2, …; returns the verdict on the last. */
function after(...shown: readonly Shown[]): FolderVerdict {
  let folder = nobody;
  let verdict: FolderVerdict = { copied: "nothing was shown" };
  for (const [
    index,
    { ticket, instanceId = `i${index}`, address = "192.0.2.1", hour = index },
  ] of shown.entries()) {
    const arrival: FolderArrival = {
      at: new Date(start + hour * 3_600_000).toISOString(),
      address,
      instanceId,
    };
    verdict = judgeFolder(folder, { ...arrival, ticket }, String(index + 1));
    if ("folder" in verdict) folder = verdict.folder;
  }
  return verdict;
}

test("each ticket admits the next arrival", () => {
  expect(after({ ticket: null }, { ticket: "1" }, { ticket: "2" })).toMatchObject({ movedFrom: null });
});

test("a crawler that ended before storing its ticket may show the former one, repeatedly", () => {
  expect(after({ ticket: null }, { ticket: null })).not.toHaveProperty("copied");
  expect(after({ ticket: null }, { ticket: "1" }, { ticket: "1" }, { ticket: "1" })).not.toHaveProperty(
    "copied",
  );
});

test("a copy is revealed by an older ticket than the original has shown", () => {
  const verdict = after({ ticket: null }, { ticket: "1" }, { ticket: "2" }, { ticket: "1" });

  expect(verdict).toMatchObject({ copied: expect.stringContaining("ticket of an earlier session") });
});

test("the original is refused when its copy came first", () => {
  const verdict = after({ ticket: null }, { ticket: "1" }, { ticket: "1" }, { ticket: "2" });

  expect(verdict).toMatchObject({ copied: expect.stringContaining("another folder has shown a later one") });
});

test("a folder copied before its first session is revealed by showing no ticket", () => {
  expect(after({ ticket: null }, { ticket: "1" }, { ticket: null })).toMatchObject({
    copied: expect.stringContaining("shows no ticket"),
  });
});

test("two machines on one folder are revealed by a process that returns after another", () => {
  const verdict = after(
    { ticket: null, instanceId: "a" },
    { ticket: "1", instanceId: "b", address: "192.0.2.2" },
    { ticket: "2", instanceId: "a" },
  );

  expect(verdict).toMatchObject({ copied: expect.stringContaining("192.0.2.2") });
});

test("one process that returns from several addresses is no copy", () => {
  const verdict = after(
    { ticket: null, instanceId: "a" },
    { ticket: "1", instanceId: "a", address: "192.0.2.2" },
    { ticket: "2", instanceId: "a" },
    { ticket: "3", instanceId: "a", address: "192.0.2.2" },
  );

  expect(verdict).toMatchObject({ movedFrom: "192.0.2.1", alternates: false });
});

test("new processes that alternate between two addresses within a day are reported", () => {
  const turns = (address: string, hours: number) =>
    after(
      { ticket: null },
      { ticket: "1", address, hour: hours },
      { ticket: "2", hour: 2 * hours },
      { ticket: "3", address, hour: 3 * hours },
    );

  expect(turns("192.0.2.2", 1)).toMatchObject({ alternates: true });
  expect(turns("192.0.2.2", 10)).toMatchObject({ alternates: false });
  // One connection with both kinds of address.
  expect(turns("2001:db8::2", 1)).toMatchObject({ alternates: false });
});
