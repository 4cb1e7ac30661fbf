/** Real pages with expected values from independent parsers and people. */
import { readFileSync } from "node:fs";
import { beforeAll, describe, expect, it } from "vitest";
import { canonicalEscapes } from "#core/ip/url-host";
import { decodeText } from "#crawler/extract/charset";
import { pageText } from "#crawler/extract/extract-page";
import { tidy } from "#crawler/extract/read-links";
import type { PageExtract } from "#protocol/result";
import { sharedData } from "../../support/shared-data.ts";
import { extracted, readOf } from "../support/extracted.ts";

interface RealPage {
  readonly name: string;
  readonly file: string;
  readonly url: string;
  readonly contentType: string;
  readonly encoding: string;
  readonly bytesAreAscii: boolean;
  /** Values given by people, where available. */
  readonly human: {
    readonly title?: string;
    readonly date?: string;
    readonly date_published?: string;
    readonly publishedTime?: string | null;
    /** Texts of the page's own, and texts of its furniture. */
    readonly with?: readonly string[];
    readonly without?: readonly string[];
  };
  /** Values found by parsers. */
  readonly gold: {
    readonly title: string | null;
    readonly htmlLang: string | null;
    readonly metaDescription: string | null;
    readonly metaRobots: readonly string[];
    readonly canonical: string | null;
    readonly feeds: readonly string[];
    readonly links: readonly string[];
  };
}

/** Letters and marks in the compared form. */
const plain = (parts: readonly string[]) => tidy(parts.join(" ").normalize("NFC"));

const manifest = sharedData("suites/pages/manifest.json");

describe.skipIf(manifest === null)("on 254 real pages", () => {
  const pages: {
    readonly real: RealPage;
    readonly page: PageExtract;
    readonly text: string;
    readonly all: string;
  }[] = [];

  beforeAll(async () => {
    for (const real of JSON.parse(readFileSync(manifest!, "utf8")) as RealPage[]) {
      const bytes = readFileSync(sharedData(`suites/pages/${real.file}`)!);
      const { url, contentType } = real;
      const read = await readOf(decodeText(bytes, contentType).text);
      const page = await extracted(bytes, { url, contentType, contentLanguage: null });
      const { text, unquoted } = pageText(read);
      const all = plain(read.blocks.map((block) => block.text));
      pages.push({ real, page, text: plain([text, unquoted]), all });
    }
  }, 120_000);

  /** The parsers keep percent-encoded octets as written (RFC 3986 section 6.2.2). */
  const inOneSpelling = (urls: readonly string[]) => [...new Set(urls.map(canonicalEscapes))];

  function wrong(isRight: (page: PageExtract, real: RealPage) => boolean): string[] {
    return pages.filter(({ page, real }) => !isRight(page, real)).map(({ real }) => real.name);
  }

  const most = (share: number) => Math.floor(pages.length * (1 - share));

  it("title, language, description, robots and canonical URL are those of the parsers for 99 %", () => {
    const titles = wrong(
      (page, { gold }) => gold.title === null || page.title === tidy(gold.title).slice(0, 500),
    );
    const languages = wrong((page, { gold }) => (page.declaredLanguage ?? null) === gold.htmlLang);
    const descriptions = wrong(
      (page, { gold }) => page.description === tidy(gold.metaDescription ?? "").slice(0, 1000),
    );
    const robots = wrong((page, { gold }) => {
      const said = gold.metaRobots.join(",");
      const [noindex, nofollow] = [/noindex|none/i.test(said), /nofollow|none/i.test(said)];
      return page.robots.noindex === noindex && page.robots.nofollow === nofollow;
    });
    const canonicals = wrong(
      (page, { gold }) => page.canonicalUrl === (gold.canonical && canonicalEscapes(gold.canonical)),
    );

    for (const differing of [titles, languages, descriptions, robots, canonicals])
      expect(differing.length, differing.join()).toBeLessThanOrEqual(most(0.99));
  });

  it("links and feeds are those of the parsers, in their order, for 99 %", () => {
    const links = wrong(
      (page, { gold }) =>
        page.links.map(({ url }) => url).join("\n") === inOneSpelling(gold.links).join("\n"),
    );
    const feeds = wrong(
      (page, { gold }) => (page.feeds ?? []).join("\n") === [...new Set(gold.feeds)].slice(0, 20).join("\n"),
    );

    expect(links.length, links.join()).toBeLessThanOrEqual(most(0.99));
    expect(feeds.length, feeds.join()).toBeLessThanOrEqual(most(0.99));
  });

  it("the charset is the browsers', except for pages in ASCII, which are also UTF-8", () => {
    const charsets = wrong(
      (page, real) => real.bytesAreAscii || page.charset === real.encoding.toLowerCase(),
    );

    expect(charsets).toEqual([]);
  });

  it("the visible headline is the title, first heading or name for 85 %", () => {
    const spelled = (text: string) =>
      tidy(text.normalize("NFC"))
        .toLowerCase()
        .replace(/[’‘]/g, "'")
        .replace(/[“”]/g, '"')
        .replace(/[–—]/g, "-");
    const titled = pages.filter(({ real }) => real.human.title !== undefined);
    const right = titled.filter(({ page, real }) => {
      const first = page.headings.find(({ level }) => level === 1)?.text ?? "";
      const shown = [page.title, first, page.structured?.name ?? ""];
      return shown.map(spelled).includes(spelled(real.human.title!));
    });

    expect(right.length / titled.length).toBeGreaterThan(0.85);
  });

  it("the main text has 94 % of what people marked as content, and omits 78 % of the rest", () => {
    const met = (which: "with" | "without") =>
      pages.flatMap(({ real, text, all }) =>
        (real.human[which] ?? [])
          .map((part) => plain([part]))
          .filter((part) => all.includes(part))
          .map((part) => text.includes(part)),
      );
    const share = (parts: readonly boolean[]) => parts.filter((isIn) => isIn).length / parts.length;

    expect(share(met("with"))).toBeGreaterThan(0.94);
    expect(share(met("without"))).toBeLessThan(0.22);
  });

  it("the day of publication agrees with people for 80 %", () => {
    const dated = pages.flatMap(({ page, real }) => {
      const date = real.human.date ?? real.human.date_published ?? real.human.publishedTime;
      return date ? [(page.publishedAt ?? "").slice(0, 10) === date.slice(0, 10)] : [];
    });

    expect(dated.filter((isRight) => isRight).length / dated.length).toBeGreaterThan(0.8);
  });
});
