/**
 * When a page was published and last changed, by what it says itself, the surest first: article metas, JSON-LD,
 * microdata, other metas in use, times in the text, the day in its address. Last-Modified is not asked: it tells when
 * the file was made, and most servers make it for each answer.
 */

import { mark } from "./open-elements.ts";
import type { NotedTime, PageNotes } from "./page-notes.ts";
import { readMoment } from "./read-moment.ts";
import type { StructuredData } from "./structured-data.ts";
import type { TextBlock } from "./text-blocks.ts";

export interface PageDates {
  /** ISO 8601; null when the page does not say. */
  readonly publishedAt: string | null;
  readonly modifiedAt: string | null;
}

export function pageDates(page: {
  readonly notes: PageNotes;
  readonly structured: StructuredData | null;
  readonly blocks: readonly TextBlock[];
  readonly language: string | null;
  readonly url: string;
}): PageDates {
  const { notes, structured, language } = page;
  const read = (text: string | null | undefined) => (text == null ? null : readMoment(text, language));
  const first = (names: readonly string[], values: ReadonlyMap<string, string>) => {
    for (const name of names) {
      const moment = read(values.get(name));
      if (moment !== null) return moment;
    }
    return null;
  };
  const timed = (says: RegExp) => read(notes.times.find((time) => says.test(time.says))?.value);
  return {
    publishedAt:
      first(surePublished, notes.metas) ??
      read(structured?.published) ??
      first(["datepublished", "datecreated"], notes.items) ??
      first(otherPublished, notes.metas) ??
      timed(/pubdate|publish|posted|entry-date|post-date|dt-published/) ??
      read(firstTime(notes.times)?.value) ??
      dayInAddress(page.url) ??
      dayInText(page.blocks, language),
    modifiedAt:
      first(sureModified, notes.metas) ??
      read(structured?.modified) ??
      first(["datemodified"], notes.items) ??
      first(otherModified, notes.metas) ??
      timed(/updated|modified/),
  };
}

const surePublished = ["article:published_time", "og:published_time", "og:article:published_time"];
const sureModified = [
  "article:modified_time",
  "og:updated_time",
  "og:modified_time",
  "og:article:modified_time",
];
const otherPublished = (
  "parsely-pub-date sailthru.date article.published published_time datepublished date_published publish_date " +
  "publish-date publishdate publication_date pubdate article_date_original cxenseparse:recs:publishtime " +
  "originalpublicationdate dc.date.issued dcterms.created dc.date.created dcterms.issued dcterms.date dc.date " +
  "dcsext.articlefirstpublished citation_publication_date citation_date vr:published_time og:pubdate created " +
  "date article.created timestamp time bt:pubdate displaydate sdate"
).split(" ");
const otherModified =
  "lastmod last-modified last_modified modified_time datemodified dcterms.modified dc.date.modified modified revised".split(
    " ",
  );

/** The first time in the page's main part that is a date. */
function firstTime(times: readonly NotedTime[]): NotedTime | undefined {
  const dated = times.filter(
    (time) => readMoment(time.value) !== null && !/updated|modified/.test(time.says),
  );
  return dated.find((time) => time.isInMain) ?? dated[0];
}

/** `/2019/04/28/`, `/2019-04-28-` in the path. */
function dayInAddress(url: string): string | null {
  const found = /\/(\d{4})[/-]?(\d{2})[/-]?(\d{2})(?=[/_-])/.exec(url);
  return found === null ? null : readMoment(`${found[1]}-${found[2]}-${found[3]}`);
}

/** A line near the first heading that holds a date and little else; else the first such line of the page. */
function dayInText(blocks: readonly TextBlock[], language: string | null): string | null {
  const heading = Math.max(
    0,
    blocks.findIndex(({ headingLevel }) => headingLevel === 1),
  );
  const near = blocks.slice(Math.max(0, heading - 4), heading + 10);
  return dayIn(near, 120, language) ?? dayIn(blocks.slice(0, maxDatedBlocks), 40, language);
}

const maxDatedBlocks = 500;

function dayIn(blocks: readonly TextBlock[], most: number, language: string | null): string | null {
  for (const { text, marks } of blocks) {
    const isLine = text.length >= 6 && text.length <= most && /\d{4}|\d\.\d\d?\.\d\d/.test(text);
    const moment =
      isLine && (marks & (mark.hidden | mark.furniture)) === 0 ? readMoment(text, language) : null;
    if (moment !== null) return moment;
  }
  return null;
}
