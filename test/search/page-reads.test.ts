/** What the index knows of one page: its text as far as it may be shown, and the hosts that link to it. */
import { expect, it } from "vitest";
import { pageOf } from "#coordinator/tell/search/page-reads";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { addLinks } from "../support/links.ts";
import { seedPage, seedWorld } from "../support/seed-world.ts";
import { keyOf } from "../support/store-world.ts";

const database = await forThisFile(testDatabase());
const { pool } = database;
const url = "https://www.example.org/";
await seedWorld(pool);
await seedPage(pool, { url, title: "Harbour", text: "The ferries sail. ".repeat(100) });
const read = async () => await pageOf(pool, keyOf(url), { fetches: 0, inLinks: 0, outLinks: 0 });

it("the beginning of the text is shown, no longer than the site allows", async () => {
  const whole = await read();
  await pool.query("update document set snippet_characters = 11");
  const limited = await read();
  await pool.query("update document set snippet_characters = 0");

  expect(whole).toMatchObject({ excerpt: "The ferries sail. ".repeat(100).slice(0, 600) });
  expect(limited).toMatchObject({ excerpt: "The ferries" });
  expect(await read()).toMatchObject({ title: "Harbour", excerpt: "" });
});

it("other hosts with links to it are counted, each once, without those that advise against it", async () => {
  const from = (page: string, nofollow = false) => ({ from: keyOf(page), to: keyOf(url), nofollow });
  await addLinks(pool, [
    ...[from("https://a.example/1"), from("https://a.example/2"), from("https://b.example/")],
    ...[from("https://c.example/", true), from(`${url}own`)],
  ]);

  expect(await read()).toMatchObject({ linkingHosts: 2, inLinks: { total: 5 } });
});
