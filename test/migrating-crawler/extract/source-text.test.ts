/** Scanning a page as UTF-8 bytes gives the same as decoding it whole. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { seededRandom } from "#core/random";
import { decodeSource } from "#crawler/extract/charset";
import { wordsKept } from "#crawler/extract/lexeme-table";
import { sourceOf, utf8Source } from "#crawler/extract/source-text";
import { hostileBytes, hostileText, pick } from "../../fuzz/mutate.ts";
import { sharedData } from "../../support/shared-data.ts";
import { extracted, readOf } from "../support/extracted.ts";

const page =
  '<!doctype html><html lang="fr"><head><meta charset="utf-8"><title>Été à Łódź 😀</title><base href="/é/">' +
  '<meta name="description" content="Ça coûte 3 €"></head><body><nav class="menü nav"><a href="/ü?q=ß">Menü</a></nav><h1>Ö</h1>' +
  `<p>${"Où est-ce que l'été commence? 中文也可以。 ".repeat(40)}</p><p>soft\u00adhyphen, e\u0301, &eacute;</p>` +
  '<script type="application/ld+json">{"@type":"Article","name":"Ünïcode"}</script><img alt="café" src=x></body></html>';

const tokens = [
  ..."<>&;\"'=/!-é中😀\u0301\u00ad",
  "<p>",
  "</p>",
  "<a href='ü",
  "<!--",
  "-->",
  "<title>",
  "<svg>",
  "<![CDATA[",
  "]]>",
];

async function valuesOf(source: Parameters<typeof readOf>[0], isXml: boolean): Promise<unknown> {
  const { containers, notes, ...read } = await readOf(source, isXml);
  return structuredClone({
    ...read,
    parents: containers.parents,
    notes: { ...notes, metas: [...notes.metas], items: [...notes.items] },
  });
}

describe("a page in UTF-8", () => {
  it("is read by its bytes as by its text, whatever stands in it", async () => {
    const seed = 22;
    const random = seededRandom(seed);
    let differing = 0;
    for (let round = 0; round < 200; round++) {
      const bytes = hostileBytes(random, hostileText(random, { seeds: [page], tokens }));
      const isXml = random() < 0.1;
      const text = bytes.toString("utf8");
      if (text.length !== bytes.length) differing++;

      expect(await valuesOf(utf8Source(bytes), isXml), `seed ${seed}, round ${round}`).toEqual(
        await valuesOf(sourceOf(text), isXml),
      );
    }
    expect(differing).toBeGreaterThan(100);
  });

  it("is decoded by parts as it is as a whole, cut sequences and blocks' ends included", () => {
    const random = seededRandom(7);
    const parts = [
      "a",
      "<",
      "x".repeat(300),
      "é",
      "中",
      "😀",
      "\ufffd",
      "\xff",
      "\xe4\xb8",
      "\xf0\x9f\x98",
      "\xc3",
      "\xed\xa0\x80",
    ];
    for (let round = 0; round < 300; round++) {
      const chosen = Array.from({ length: 30 }, () => pick(random, parts));
      const bytes = Buffer.concat(
        chosen.map((part) => Buffer.from(part, part.length < 5 && part < "\u0100" ? "latin1" : "utf8")),
      );
      const source = utf8Source(bytes);
      const cuts = [0, ...[...source.units.matchAll(/</g)].map(({ index }) => index), bytes.length];

      const whole = cuts.slice(1).map((to, index) => source.slice(cuts[index]!, to));

      expect(whole.join("")).toBe(bytes.toString("utf8"));
    }
  });

  it("keeps a title's bound in characters, not in bytes", async () => {
    const title = "😀é中".repeat(1000);
    const html = `<title>${title}</title><p>x`;

    const read = await readOf(utf8Source(Buffer.from(html)));

    expect(read.title).toBe(title.slice(0, 2000));
  });
});

const manifest = sharedData("suites/pages/manifest.json");

/** Reads every fourth page; the benchmark's check reads the others. */
const every = 4;

describe.skipIf(manifest === null)("real pages", () => {
  it("are read by their bytes as by their text", async () => {
    const pages = JSON.parse(readFileSync(manifest!, "utf8")) as {
      file: string;
      url: string;
      contentType: string;
    }[];
    let byBytes = 0;
    for (const { file, contentType } of pages.filter((_, index) => index % every === 0)) {
      const bytes = readFileSync(sharedData(`suites/pages/${file}`)!);
      const { source, charset } = decodeSource(bytes, contentType);
      if (charset !== "utf-8") continue;
      byBytes++;

      expect(await valuesOf(source, false), file).toEqual(
        await valuesOf(sourceOf(bytes.toString("utf8").replace(/^\ufeff/, "")), false),
      );
    }
    expect(byBytes).toBeGreaterThan(50);
  });
});

it("a page of 50 MB, 2 million words, a word of 10 MB and 100,000 links are read within what is kept of any page", async () => {
  const line = Buffer.from(
    `<p class="été">${"Une ligne de texte. ".repeat(50)}<a href="/é">lien</a></p>\n`.repeat(63),
  );
  const long = await extracted(Buffer.concat(Array.from({ length: 800 }, () => line)));
  const word = await extracted(`<p>${"é".repeat(5_000_000)} end`);
  const numbers = Array.from({ length: 2_000_000 }, (_, index) => `w${index}`).join(" ");
  const many = await extracted(`<p>é ${numbers}`);
  const linked = await extracted(
    Array.from({ length: 100_000 }, (_, index) => `<a href="/é${index}">x</a>`).join(""),
  );

  expect(long.lexemes.length).toBeLessThan(900_000);
  expect(many.lexemes.length).toBeLessThan(900_000);
  expect(many.words).toBeGreaterThan(10_000);
  expect(wordsKept()).toBeLessThanOrEqual(4 * 32_768);
  expect(word.words).toBeLessThan(3);
  expect(linked.links).toHaveLength(2000);
  expect(linked.leftOutLinks).toBe(98_000);
});
