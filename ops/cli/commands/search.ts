/** `nearcrawl search`: the pages that hold these words. */
import type { Command } from "commander";
import { answersText } from "#coordinator/results/stated-uses";
import { type FoundPage, facetNames, type SearchAnswer } from "#coordinator/search/search-answer";
import { operatorHelp, searchApi } from "#coordinator/search/search-api";
import { printable } from "#core/terminal-text";
import { roomCommand } from "../room-command.ts";

const operatorLines = operatorHelp.map(([typed, words]) => `  ${typed.padEnd(24)}${words}`).join("\n");

export function searchCommand(): Command {
  return roomCommand({
    ...{ name: "search", operation: searchApi.search, takes: "q..." },
    says: "search the crawled pages; export the index to a search engine",
    columns: { pages: "url" },
    text: searchText,
    help: `

Examples:
  nearcrawl search harbour -ferry --language en
  nearcrawl search '"harbour wall"' --host example.org --sort date
  nearcrawl search ferry site:example.org after:2026-01-01

Filters among the words:
${operatorLines}`,
  });
}

export function pageCommand(): Command {
  return roomCommand({
    ...{ name: "page", operation: searchApi.page, takes: "url" },
    says: "what the index has of a page: facts, fetches, links from and to it",
    columns: {
      items: "url title anchor nofollow state fetchedAt crawler outcome status firstByteMs totalMs bodyBytes",
      changes: "seenAt kind words difference",
      headings: "",
    },
    help: "\n\nExample:\n  nearcrawl page https://www.example.org/",
  });
}

// An answer of the search as people read it in a terminal.

function searchText(answer: SearchAnswer): string {
  const idea = answer.didYouMean === null ? [] : [printable(`Did you mean: ${answer.didYouMean}`)];
  const note = answer.note === null ? [] : [answer.note];
  if (answer.note !== null && answer.pages.length === 0) return answer.note;
  const results = answer.pages.map((page, index) => resultText(page, answer.offset + index + 1));
  return [...idea, ...results, [countText(answer), ...facetLines(answer)].join("\n"), ...note].join("\n\n");
}

function countText({ more, total }: SearchAnswer): string {
  return `${more ? "at least " : ""}${total} ${total === 1 ? "page" : "pages"}`;
}

function resultText(page: FoundPage, number: number): string {
  const day = (iso: string) => iso.slice(0, 10);
  const facts = [
    page.publishedAt === null ? null : `published ${day(page.publishedAt)}`,
    `fetched ${day(page.fetchedAt)}${page.crawler === null ? "" : ` by ${page.crawler}`}`,
    page.language,
    page.country,
    answersText(page.uses) === "" ? null : `states ${answersText(page.uses)}`,
    page.alike > 0 ? `${page.alike} more with nearly the same text` : null,
  ].filter((fact) => fact !== null);
  return [
    printable(`${number}. ${page.title || "(no title)"}`, 150),
    printable(`   ${page.url}`, 300),
    printable(`   ${page.snippet.map((part) => part.text).join("")}`, 300),
    printable(`   ${facts.join(" · ")}`, 300),
    ...(page.reasons ?? []).map(
      ({ points, most, words }) =>
        `   ${points.toFixed(1).padStart(5)} of ${String(most).padStart(2)}  ${printable(words)}`,
    ),
    ...(page.reasons === null ? [] : [`   ${page.rank.toFixed(1).padStart(5)} points`]),
  ].join("\n");
}

/** Values that the results can be narrowed by, where there is more than one. */
function facetLines({ facets }: SearchAnswer): string[] {
  return facetNames.flatMap((name) => {
    const values = facets[name];
    if (values.length < 2) return [];
    return [printable(`${name}: ${values.map(({ value, pages }) => `${value} ${pages}`).join(", ")}`, 200)];
  });
}
