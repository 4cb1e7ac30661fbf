/** Copies of a crawler's folder, and harmless restarts: tickets and processes over real sessions. */
import { afterEach, expect, it } from "vitest";
import { forThisFile } from "../support/for-this-file.ts";
import { until } from "../support/until.ts";
import { newJoiningWorld } from "./joining-world.ts";

const world = await forThisFile(newJoiningWorld());
afterEach(async () => await world.reset());

it("a copied folder is refused while the original is at work, which goes on", async () => {
  const folder = await world.joined("athens");
  const copy = { ...folder };
  const original = await world.come(folder);

  const copied = await world.come(copy);
  await until(async () => (await world.incidentKinds()).includes("copied-folder"), 5000);

  expect(copied.refuse).toMatchObject({
    code: "copied-folder",
    retry: false,
    reason: expect.stringContaining("127.0.0.1"),
  });
  expect(await world.stateOf("athens")).toBe("online");
  expect(original.crawler.received).toEqual([]);
  await world.leave(original.crawler, "athens");
});

it("of a folder and its copy one is refused after the other has left, too", async () => {
  const folder = await world.joined("athens");
  const copy = { ...folder };
  for (const _ of [1, 2]) await world.leave((await world.come(folder)).crawler, "athens");

  const copied = await world.come(copy);
  const original = await world.come(folder);

  expect(copied.refuse).toMatchObject({ code: "copied-folder", retry: false });
  expect(original.welcome).not.toBeNull();
  await world.leave(original.crawler, "athens");
});

it("who ends between a welcome and the keeping of its ticket is let in again", async () => {
  const folder = await world.joined("athens");

  for (const _ of [1, 2, 3]) {
    const { crawler, welcome } = await world.come(folder, { forgetful: true });
    expect(welcome).not.toBeNull();
    await world.leave(crawler, "athens");
  }
  const { welcome, crawler } = await world.come(folder);

  expect(welcome).not.toBeNull();
  await world.leave(crawler, "athens");
});

it("what the process before said at its end, and why it was away, are kept", async () => {
  const folder = await world.joined("athens");
  await world.leave((await world.come(folder)).crawler, "athens");
  const lastEnd = { at: "2030-01-01T12:00:00.000Z", reason: "out of memory" };

  const { crawler } = await world.come(folder, { change: (hello) => ({ ...hello, lastEnd }) });

  const rows = await world.rows(
    "select last_words, last_end_at, was_offline_reason, host(seen_address) as seen_address from crawler",
  );
  expect(rows).toEqual([
    {
      last_words: "out of memory",
      last_end_at: new Date(lastEnd.at),
      was_offline_reason: expect.stringContaining("closed"),
      seen_address: "127.0.0.1",
    },
  ]);
  await world.leave(crawler, "athens");
});
