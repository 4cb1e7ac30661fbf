/** Compares the URL spellings in SQL (migration 0074), which database checks use, with those in TypeScript. */
import { expect, it } from "vitest";
import { canonicalEscapes } from "#core/ip/url-host";
import { seededRandom } from "#core/random";
import { testDatabase } from "../support/database.ts";
import { forThisFile } from "../support/for-this-file.ts";

const database = await forThisFile(testDatabase());

it("SQL and TypeScript give the same spelling of every text", async () => {
  const random = seededRandom(3);
  const signs = "% % % 2 3 4 7 d D e E f 0 ~ / g %25 %7e %2F %00 %ff ü".split(" ");
  const texts = Array.from({ length: 5000 }, () =>
    Array.from({ length: Math.floor(random() * 13) }, () => signs[Math.floor(random() * signs.length)]).join(
      "",
    ),
  );

  const { rows } = await database.pool.query<{ written: string }>(
    "select canonical_escapes(text) as written from unnest($1::text[]) with ordinality as t (text, nth) order by nth",
    [texts],
  );

  expect(rows.map(({ written }) => written)).toEqual(texts.map(canonicalEscapes));
});
