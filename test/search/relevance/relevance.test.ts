/** The right page comes first, in ten languages. The figures over real pages: npm run bench -- relevance. */
import { describe, expect, it } from "vitest";
import { openFts5 } from "../open-engines.ts";
import { measuresOf } from "./measures.ts";
import { pagesOf, writtenSet } from "./page-set.ts";
import { plainBm25 } from "./rankers.ts";
import { realSet } from "./real-questions.ts";
import { relevanceContract } from "./relevance-contract.ts";

relevanceContract("the index in a file", async () => await openFts5(":memory:"));

it("plain BM25 does not find what is inflected, mistyped, linked to or within a run of ideographs", async () => {
  const set = await writtenSet();
  const plain = plainBm25(set);
  const hard = set.questions.filter(({ kind }) => ["inflected", "typo", "anchor", "bigram"].includes(kind));
  const found = [];
  for (const { text, grades } of hard) found.push(measuresOf(await plain(text), grades).success);
  plain.close();

  expect(found.filter((success) => success === 1).length).toBeLessThan(hard.length / 4);
});

describe("questions about real pages", () => {
  it("are titles, rare words, headings and topics; how relevant a page is, its publisher and its words say", async () => {
    const filler = (word: string) =>
      `<p>${Array.from({ length: 60 }, (_, at) => `${word}${at}`).join(" ")}.</p>`;
    const page = (name: string, title: string, body: string, keywords = "") => ({
      url: `https://${name}.example/`,
      contentType: "text/html; charset=utf-8",
      bytes: Buffer.from(`<html lang="en"><title>${title}</title><meta name="keywords" content="${keywords}">
        <main><h1>${title}</h1>${body}${filler(name)}</main></html>`),
    });
    const ferry = "<p>The ferry of Chios leaves. Chios ferry harbour.</p><p>A harbour, a ferry to Chios.</p>";
    const { questions } = realSet(
      await pagesOf([
        page(
          "first",
          "Ferry to the islands",
          `<h2>When the boats leave</h2>${ferry}${ferry}`,
          "ferry, Boats",
        ),
        page("second", "A ferry", "<p>Nothing else is here.</p>"),
        page(
          "third",
          "Trains",
          `${ferry}<p>Trains cross. Trains cross. Trains cross. Trains run, run, run.</p>`,
        ),
        page("fourth", "Planes", "<p>One ferry is named here once.</p>"),
      ]),
    );

    const [first, second, third] = ["first", "second", "third"].map((name) => `https://${name}.example/`);
    expect(questions.map(({ kind, text, grades }) => [kind, text, Object.fromEntries(grades)])).toEqual([
      ["title", "ferry to the islands", { [first!]: 1 }],
      ["words", "chios harbour ferry", { [first!]: 1 }],
      ["words", "trains cross chios", { [third!]: 1 }],
      ["heading", "when the boats leave", { [first!]: 1 }],
      ["topical", "ferry", { [first!]: 3, [second!]: 2, [third!]: 1 }],
    ]);
  });
});
