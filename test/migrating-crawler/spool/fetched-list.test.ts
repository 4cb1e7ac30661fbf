/** The list of a crawler's requests for partners who receive complaints, and the command that reads it. */
import { appendFileSync, mkdirSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, expect, it } from "vitest";
import { FetchedList } from "#crawler/spool/fetched-list";
import { until } from "../../support/until.ts";
import { type PartnerConsole, partnerConsole } from "../support/partner-console.ts";

const mebibyte = 1024 * 1024;
const noon = new Date("2026-11-28T12:00:00Z");
let partner: PartnerConsole;
let now: Date;
let folder: string;
beforeEach(() => {
  now = noon;
  partner = partnerConsole({ now: () => noon });
  mkdirSync(join(partner.home, "spool"), { recursive: true });
  folder = join(partner.home, "crawler", "fetched");
});

const listOf = (wanted = { days: 30, maxBytes: mebibyte }) =>
  new FetchedList({ kept: { home: partner.home, warn: () => {} }, wanted: () => wanted, now: () => now });
const asked = (url: string) => ({ url, how: "GET", status: 200, address: "192.0.2.7" });

it("is filtered by time, by host and its subdomains, or by address, and shown as text or as written", async () => {
  const list = listOf();
  now = new Date("2026-11-27T11:00:00Z");
  list.note(asked("https://example.org/old"));
  list.write();
  now = new Date("2026-11-28T11:00:00Z");
  list.note(asked("https://www.example.org/new"));
  list.note({
    ...asked("https://notexample.org/"),
    status: null,
    failure: "connect-timeout",
    address: "192.0.2.8",
  });
  list.write();

  const urlsOf = async (...args: string[]) =>
    [...(await partner.run("fetched", ...args)).text.matchAll(/https:\S+/g)].map(([url]) => url);

  expect((await partner.run("fetched", "--host", "example.org")).text).toBe(
    "2026-11-28T11:00:00.000Z  200 GET https://www.example.org/new (192.0.2.7)",
  );
  expect(await urlsOf("--since", "2026-11-27", "--host", "EXAMPLE.org")).toHaveLength(2);
  expect(await urlsOf("--since", "2026-11-27", "--until", "2026-11-28T10:00Z")).toEqual([
    "https://example.org/old",
  ]);
  expect(await urlsOf("--host", "192.0.2.8")).toEqual(["https://notexample.org/"]);
  expect(JSON.parse((await partner.run("fetched", "--host", "192.0.2.8", "--json")).text)).toMatchObject({
    url: "https://notexample.org/",
    status: null,
    failure: "connect-timeout",
  });
});

it.each(["yesterday", "2026-02-30", "2026-11-28T10:00", "-1h", "99999999d"])(
  "--since %s is refused",
  async (since) => {
    const { code, text } = await partner.run("fetched", `--since=${since}`);

    expect([code, text]).toEqual([2, expect.stringContaining(`--since ${since}: must be`)]);
  },
);

it("says when it begins if nothing matches, and when there is no list", async () => {
  const none = await partner.run("fetched");
  const list = listOf();
  list.note(asked("https://example.org/"));
  list.write();
  const nothing = await partner.run("fetched", "--host", "elsewhere.example");

  expect(none).toMatchObject({ code: 3, text: expect.stringContaining("There is no list") });
  expect(nothing).toMatchObject({
    code: 3,
    text: expect.stringContaining("begins at 2026-11-28T12:00:00.000Z"),
  });
});

it("stays within its bytes and days, keeps the newest, and skips a truncated line", async () => {
  const list = listOf();
  now = new Date("2026-10-01T00:00:00Z");
  list.note(asked("https://example.org/long-ago"));
  list.write();
  for (let batch = 0; batch < 60; batch++) {
    now = new Date(noon.getTime() - (60 - batch) * 1000);
    for (let at = 0; at < 200; at++) list.note(asked(`https://example.org/${batch}/${at}/${Math.random()}`));
    list.write();
  }
  await until(() => readdirSync(folder).filter((name) => name.endsWith(".jsonl")).length === 1, 5000);
  const newest = readdirSync(folder).find((name) => name.endsWith(".jsonl"))!;
  appendFileSync(join(folder, newest), '{"at":"2026-11-28T11:59:59Z","url":"https://torn');

  const { text } = await partner.run("fetched", "--since", "90d");

  const bytes = readdirSync(folder).reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
  expect(bytes).toBeLessThanOrEqual(mebibyte);
  expect(readdirSync(folder).some((name) => name.endsWith(".gz"))).toBe(true);
  expect(text).toContain("https://example.org/59/199/");
  expect(text).not.toMatch(/torn|long-ago/);
});

it("is not kept when it is turned off", () => {
  const list = listOf({ days: 0, maxBytes: mebibyte });
  list.note(asked("https://example.org/"));
  list.write();

  expect(() => readdirSync(folder)).toThrow(/ENOENT/);
});
