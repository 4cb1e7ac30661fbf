/** Migration 0141 moves the texts of pages into table document, and loses nothing that was searched. */
import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { migrate } from "#db/migrate";
import { openServerDatabase } from "#db/server-database";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";
import { temporaryFolder } from "../support/temporary-folder.ts";

const server = await forThisFile(testDatabase());
const database = await forThisFile(openServerDatabase({ databaseUrl: server.url, schema: "old_pages" }));
const rows = async (text: string) => (await database.pool.query(text)).rows;

/** A page as version 0140 has it: its words with their places, those of the title with a weight. */
const page = (number: number, config: string, title: string, text: string, excerpt: string) => `
  insert into page (host_hash, url_hash, url, host, crawler_id, fetched_at, status, content_type, text_search_config, title,
    description, excerpt, headings, structured, noindex, digest, simhash, words, body_bytes, wire_bytes, shipped_bytes,
    preference_set, lexemes)
  values (${number}, 1, 'http://${config}.example/', '${config}.example', 1, now(), 200, 'text/html', '${config}', '${title}',
    'Of ${title}', '${excerpt}', '[{"level": 1, "text": "${title}"}]', '{"type": "Article", "name": "", "description": ""}',
    false, repeat('0', 64), repeat('0', 16), ${number}, 1, 1, 1, 5,
    setweight(to_tsvector('${config}', '${title}'), 'A') || to_tsvector('${config}', '${text}'))`;

it("a page of the last version has the beginning of its text, and its words in order as text that is not shown", async () => {
  const before = temporaryFolder("nearcrawl-migrations-");
  cpSync("db/migrations", before, { recursive: true });
  rmSync(join(before, "0141-documents.sql"));
  await migrate(database, { folder: before });
  const english = "The ferries leave the harbour, and the ferries return at night";
  await rows(page(1, "english", "Ferries", english, "The ferries leave"));
  await rows(page(2, "german", "Häfen", "Die Fähren verlassen den Hafen", "Die Fähren"));
  await rows(page(3, "simple", "港", "フェリー 港 it''s \\d", ""));

  const { applied } = await migrate(database);

  expect(applied).toEqual(["0141-documents"]);
  expect(await rows("select text, unquoted, snippet_characters from document order by host_hash")).toEqual([
    {
      text: "The ferries leave",
      unquoted: "ferri leav harbour ferri return night",
      snippet_characters: null,
    },
    { text: "Die Fähren", unquoted: "fahr verlass haf", snippet_characters: null },
    { text: "", unquoted: "フェリー 港 it s d", snippet_characters: null },
  ]);
  expect(await rows("select description, headings, structured from document where host_hash = 2")).toEqual([
    {
      ...{ description: "Of Häfen", headings: [{ level: 1, text: "Häfen" }] },
      structured: { type: "Article", name: "", description: "" },
    },
  ]);
  expect(await rows("select title, words, preference_set from page order by host_hash")).toEqual([
    { title: "Ferries", words: 1, preference_set: 5 },
    { title: "Häfen", words: 2, preference_set: 5 },
    { title: "港", words: 3, preference_set: 5 },
  ]);
});

it("a text goes with its page, whatever deletes it", async () => {
  await rows("delete from page where host_hash in (1, 2)");

  expect(await rows("select host_hash from document")).toEqual([{ host_hash: "3" }]);
});
