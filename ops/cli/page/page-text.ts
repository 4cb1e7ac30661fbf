/** What was read from a page, for people: one fact a line, then its first links. */
import type { PageExtract } from "#protocol/result";
import { printable } from "../printable.ts";

const shownLinks = 20;
const shownHeadings = 8;

export function pageText(page: PageExtract): string {
  const facts: readonly (readonly [name: string, fact: string | null | undefined])[] = [
    ["kind", page.kind ?? "page"],
    ["title", page.title],
    ["description", page.description],
    ["language", languageWords(page)],
    ["canonical", page.canonicalUrl],
    ["published", page.publishedAt],
    ["modified", page.modifiedAt],
    ["about", aboutWords(page)],
    ["robots", robotsWords(page)],
    ["content", `${page.contentType || "no type"}, ${page.charset}`],
    ["words", `${page.words}, ${lexemeCount(page.lexemes)} lexemes (${page.textSearchConfig})`],
    ["excerpt", page.excerpt],
    ["digest", page.digest],
    ["simhash", page.simhash],
    ["soft 404", page.softNotFound ? "it says that there is no such page" : null],
    ["near", page.nearDuplicateOf],
    ...(page.feeds ?? []).map((feed) => ["feed", feed] as const),
    ...page.headings.slice(0, shownHeadings).map(({ level, text }) => [`h${level}`, text] as const),
  ];
  const lines = facts.flatMap(([name, fact]) => (fact ? [`${name.padEnd(12)}${printable(fact)}`] : []));
  return [...lines, ...linkLines(page)].join("\n");
}

function languageWords({ language, declaredLanguage, detectedLanguage }: PageExtract): string {
  const declared = declaredLanguage === undefined ? "not declared" : `declared ${declaredLanguage}`;
  const detected = detectedLanguage === undefined ? "" : `, looks like ${detectedLanguage}`;
  return `${language ?? "undecided"} (${declared}${detected})`;
}

function aboutWords({ structured }: PageExtract): string | null {
  if (structured === undefined) return null;
  return [structured.type, structured.name, structured.description].filter((part) => part !== "").join(": ");
}

function robotsWords({ robots }: PageExtract): string {
  const index = robots.noindex ? "noindex" : "index";
  return `${index}, ${robots.nofollow ? "nofollow" : "follow"}`;
}

/** Of a vector in tsvector's input form: entries are separated by blanks that stand outside of quotes. */
function lexemeCount(lexemes: string): number {
  return lexemes === "" ? 0 : (lexemes.match(/':/g)?.length ?? 0);
}

function linkLines({ links, trappedLinks }: PageExtract): string[] {
  const trapped = trappedLinks === undefined ? "" : `, ${trappedLinks} left out as a trap`;
  const shown = links.slice(0, shownLinks).map(({ url, anchor, nofollow }) => {
    const words = anchor === "" ? "" : `  “${printable(anchor, 60)}”`;
    return `  ${printable(url)}${words}${nofollow ? "  nofollow" : ""}`;
  });
  const more =
    links.length > shownLinks ? [`  … and ${links.length - shownLinks} more (--json has all)`] : [];
  return [`${"links".padEnd(12)}${links.length}${trapped}`, ...shown, ...more];
}
