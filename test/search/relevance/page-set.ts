/**
 * Pages and questions about them: real pages of the shared data, and pages written for this in ten languages. Both are what the
 * crawler extracts of documents; anchors are those of links between them.
 */
import { createReadStream, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "node-html-parser";
import { WARCParser } from "warcio";
import { decodeText } from "#crawler/extract/charset";
import type { PageExtract } from "#protocol/result";
import { extracted } from "../../migrating-crawler/support/extracted.ts";
import { sharedData } from "../../support/shared-data.ts";
import type { Grades } from "./measures.ts";

export interface SetPage {
  readonly url: string;
  readonly extract: PageExtract;
  /** Texts of links to it from other hosts, one of each host. */
  readonly anchors: readonly string[];
  /** How its publisher files it: its keywords, tags and section, which no engine sees. */
  readonly topics: readonly string[];
}

export interface Question {
  readonly kind: string;
  readonly text: string;
  /** By URL. */
  readonly grades: Grades;
  readonly half: Half;
}

/** Weights may be chosen by the questions for tuning. What counts are the others. */
export type Half = "all" | "tuning" | "held out";

export interface PageSet {
  readonly pages: readonly SetPage[];
  readonly questions: readonly Question[];
}

export interface SetDocument {
  readonly url: string;
  readonly contentType: string;
  readonly bytes: Buffer;
}

export async function pagesOf(documents: readonly SetDocument[]): Promise<readonly SetPage[]> {
  const read: Omit<SetPage, "anchors">[] = [];
  for (const { url, contentType, bytes } of documents)
    read.push({
      url,
      extract: await extracted(bytes, { url, contentType, contentLanguage: null }),
      topics: topicsOf(decodeText(bytes, contentType).text),
    });
  return read.map((page) => ({ ...page, anchors: anchorsOf(page.url, read) }));
}

function anchorsOf(url: string, pages: readonly Pick<SetPage, "url" | "extract">[]): readonly string[] {
  const host = new URL(url).host;
  const anchors = new Map<string, string>();
  for (const { url: from, extract } of pages) {
    const link = extract.links.find((one) => one.url === url && one.anchor !== "");
    if (link !== undefined && new URL(from).host !== host) anchors.set(new URL(from).host, link.anchor);
  }
  return [...new Set(anchors.values())].slice(0, 20);
}

/** Read by a parser that is not the crawler's. */
function topicsOf(html: string): readonly string[] {
  const root = parse(html);
  const stated = root.querySelectorAll("meta").flatMap((meta) => {
    const name = (meta.getAttribute("name") ?? meta.getAttribute("property") ?? "").toLowerCase();
    const isTopic = ["keywords", "news_keywords", "article:tag", "article:section"].includes(name);
    return isTopic ? (meta.getAttribute("content") ?? "").split(/[,;]/) : [];
  });
  const tags = root.querySelectorAll("a").filter((link) => {
    const [rel, href] = [link.getAttribute("rel") ?? "", link.getAttribute("href") ?? ""];
    return /\btag\b/.test(rel) || /\/(?:tags?|topics?|thema|themen|tema|temas)\/[^/]/i.test(href);
  });
  const all = [...stated, ...tags.map(({ text }) => text)].map((topic) => topic.trim().toLowerCase());
  return [...new Set(all)].filter((topic) => topic !== "" && topic.length <= 60);
}

interface ManifestEntry {
  readonly name: string;
  readonly file: string;
  readonly url: string;
  readonly contentType: string | null;
}

/** The 254 pages, and those in samples of archives; one of each URL. Null, with a message, where the shared data is absent. */
export async function realDocuments(): Promise<readonly SetDocument[] | null> {
  const [folder, samples] = [sharedData("suites/pages"), sharedData("suites/warc/samples")];
  if (folder === null || samples === null) return null;
  const manifest = JSON.parse(readFileSync(join(folder, "manifest.json"), "utf8")) as ManifestEntry[];
  const documents = manifest.map(({ name, file, url, contentType }) => ({
    // Some come without their address.
    url: /^https?:\/\/(?!fakehost\/)/.test(url) ? url : `https://${name.split("/")[1]}.example/`,
    contentType: contentType ?? "text/html",
    bytes: readFileSync(join(folder, file)),
  }));
  for (const file of readdirSync(samples)) {
    if (!/(?<!bad[\w.-]*)\.warc(?:\.gz)?$/.test(file)) continue;
    for await (const record of new WARCParser(createReadStream(join(samples, file)))) {
      const contentType = record.httpHeaders?.headers.get("content-type");
      if (record.warcType !== "response" || !contentType?.startsWith("text/html")) continue;
      const bytes = Buffer.from(await record.readFully(true));
      if (bytes.length > 0) documents.push({ url: record.warcTargetURI!, contentType, bytes });
    }
  }
  return [...new Map(documents.map((document) => [document.url, document])).values()];
}

interface WrittenLanguage {
  readonly language: string;
  readonly pages: readonly {
    readonly name: string;
    readonly title: string;
    readonly heading: string;
    readonly text: readonly string[];
    /** Text of a link by the name of the page that it leads to. */
    readonly links?: Readonly<Record<string, string>>;
  }[];
  readonly questions: readonly (readonly [kind: string, text: string, Readonly<Record<string, number>>])[];
}

export async function writtenSet(): Promise<PageSet> {
  const file = join(import.meta.dirname, "written-pages.json");
  const languages = JSON.parse(readFileSync(file, "utf8")) as WrittenLanguage[];
  const documents = languages.flatMap(({ language, pages }) =>
    pages.map(({ name, title, heading, text, links = {} }) => {
      const nav = Object.entries(links).map(
        ([to, anchor]) => `<a href="${urlOf(language, to)}">${anchor}</a>`,
      );
      const html = `<!doctype html><html lang="${language}"><title>${title}</title><nav>${nav}</nav>
        <main><h1>${title}</h1><h2>${heading}</h2><p>${text.join("</p><p>")}</p></main></html>`;
      return {
        url: urlOf(language, name),
        contentType: "text/html; charset=utf-8",
        bytes: Buffer.from(html),
      };
    }),
  );
  const questions = languages.flatMap(({ language, questions }) =>
    questions.map(([kind, text, grades]) => ({
      ...{ kind, text, half: "all" as const },
      grades: new Map(Object.entries(grades).map(([name, grade]) => [urlOf(language, name), grade])),
    })),
  );
  return { pages: await pagesOf(documents), questions };
}

const urlOf = (language: string, name: string) => `https://${name}.${language}.example/`;
