/** What a page says of itself, in the form and within the bounds of what is shipped. */
import type { PageExtract } from "#protocol/result";
import { cutAt } from "./cut-text.ts";
import type { ResolveReference } from "./link-resolver.ts";
import { pageDates } from "./page-dates.ts";
import type { ReadPage } from "./read-page.ts";
import { withoutSoftHyphens } from "./soft-hyphens.ts";
import type { StructuredData } from "./structured-data.ts";
import { tidy } from "./tidy.ts";

/** The title element; without one what the page is called elsewhere. */
export function titleOf({ title, notes, headings }: ReadPage): string {
  if (title !== "") return cutAt(title, 500);
  const stated = shown(notes.metas.get("og:title") ?? notes.metas.get("twitter:title") ?? "");
  const heading = headings.find(({ level }) => level === 1) ?? headings[0];
  return cutAt(stated === "" ? (heading?.text ?? "") : stated, 500);
}

export function descriptionOf({ notes }: ReadPage): string {
  return cutAt(shown(notes.description ?? ""), 1000);
}

/** As a reader would see it. */
function shown(text: string): string {
  return tidy(withoutSoftHyphens(text));
}

export function datesOf(
  { notes, blocks }: ReadPage,
  structured: StructuredData | null,
  url: string,
): Pick<PageExtract, "publishedAt" | "modifiedAt"> {
  const { publishedAt, modifiedAt } = pageDates({ notes, structured, blocks, language: notes.language, url });
  return {
    ...(publishedAt === null ? {} : { publishedAt }),
    ...(modifiedAt === null ? {} : { modifiedAt }),
  };
}

export function structuredOf(data: StructuredData | null): Pick<PageExtract, "structured"> {
  if (data === null) return {};
  const { type, name, description } = data;
  return {
    structured: {
      type: cutAt(type, 80),
      name: cutAt(name, 300),
      description: cutAt(description, 1000),
    },
  };
}

export function feedsOf(hrefs: readonly string[], resolve: ResolveReference): Pick<PageExtract, "feeds"> {
  const urls = hrefs.map(resolve).filter((url) => url !== null);
  return urls.length === 0 ? {} : { feeds: [...new Set(urls)].slice(0, 20) };
}
