/** Tags and text equal WHATWG HTML's tokenizer (section 13.2.5), always in linear time. */
import { readFileSync } from "node:fs";
import { Parser } from "htmlparser2";
import { describe, expect, it } from "vitest";
import { extractPage } from "#crawler/extract/extract-page";
import type { HtmlTag } from "#crawler/extract/html-tags";
import { decodeText, HtmlScanner, type HtmlSink } from "#crawler/extract/scan-html";
import { generateWorld } from "#ops/world/generate-world";
import { pageHtml, siteFurniture } from "#ops/world/page-html";
import { planSite } from "#ops/world/site-plan";
import { sharedData } from "../../support/shared-data.ts";
import { bodyOf, readOf } from "../support/extracted.ts";

type Token =
  | readonly ["StartTag", string, Readonly<Record<string, string>>]
  | readonly ["EndTag", string]
  | readonly ["Character", string];

/** Joins adjacent texts. */
function tokensOf(html: string, isForeign = false, isXml = false): Token[] {
  const tokens: Token[] = [];
  const sink: HtmlSink = {
    isForeign,
    openTag(tag: HtmlTag) {
      const names = scanner.tag.attributeNames();
      tokens.push([
        "StartTag",
        tag.name,
        Object.fromEntries(names.map((name) => [name, scanner.tag.attribute(name) ?? ""])),
      ]);
    },
    closeTag(tag: HtmlTag) {
      tokens.push(["EndTag", tag.name]);
    },
    takeText(from, to, mayRefer) {
      const text = html.slice(from, to);
      tokens.push(["Character", mayRefer ? decodeText(text) : text]);
    },
  };
  const scanner = new HtmlScanner(html, sink, isXml);
  scanner.scanTo(html.length);
  return joined(tokens);
}

function joined(tokens: readonly Token[]): Token[] {
  const all: Token[] = [];
  for (const token of tokens) {
    const last = all.at(-1);
    if (token[0] === "Character" && last?.[0] === "Character")
      all[all.length - 1] = ["Character", last[1] + token[1]];
    else all.push(token);
  }
  return all;
}

const text = (characters: string): Token => ["Character", characters];
const start = (name: string, attributes: Record<string, string> = {}): Token => [
  "StartTag",
  name,
  attributes,
];
const end = (name: string): Token => ["EndTag", name];

describe("the scanner", () => {
  it.each(
    Object.entries<readonly [html: string, tokens: readonly Token[]]>({
      "attributes of every form": [
        `<A Href=/x?a=1&amp;b rel='no "x"' title="a>b" hidden/>`,
        [start("a", { href: "/x?a=1&b", rel: 'no "x"', title: "a>b", hidden: "" })],
      ],
      "the first of two attributes of a name": ["<a id=1 ID=2>", [start("a", { id: "1" })]],
      "a slash that belongs to a value": [
        "<a href=x/>y</a>",
        [start("a", { href: "x/" }), text("y"), end("a")],
      ],
      "no tag in a lone less-than sign": ["1 < 2 <3 <", [text("1 < 2 <3 <")]],
      "no text in comments, however they end": [
        "a<!-- <b> -->b<!-->c<!--->d<!--x--!>e<!-- - -- -->f",
        [text("abcdef")],
      ],
      "nothing in doctypes, instructions and other declarations": [
        "<!doctype html><?xml x?><![CDATA[x]]><!x>a</ b>c</>d",
        [text("acd")],
      ],
      "no tags in a script": [
        "<script>if (a<b) '</p>'</script >x",
        [start("script"), text("if (a<b) '</p>'"), end("script"), text("x")],
      ],
      "the right end of a script that writes scripts": [
        "<script><!--<script></script>--></script>x",
        [start("script"), text("<!--<script></script>-->"), end("script"), text("x")],
      ],
      "references in a title and not in a style": [
        "<title>a&amp;<b></title><style>&amp;</style>",
        [start("title"), text("a&<b>"), end("title"), start("style"), text("&amp;"), end("style")],
      ],
      "text to the end after plaintext": [
        "<plaintext></plaintext><a>",
        [start("plaintext"), text("</plaintext><a>")],
      ],
      "references without a semicolon as in browsers": [
        "&notit; &copy=1 &#x80;<a href='?a&copy=1&lt;'>",
        [text("¬it; ©=1 €"), start("a", { href: "?a&copy=1<" })],
      ],
      "no tag that the page's end cuts": ["a<a href='x", [text("a")]],
    }),
  )("finds %s", (_what, [html, tokens]) => {
    expect(tokensOf(html)).toEqual(tokens);
  });

  it("treats CDATA as text in XML", () => {
    const html = "<title/><![CDATA[a<b]]>c";

    expect(tokensOf(html, false, true)).toEqual([start("title"), text("a<bc")]);
    expect(tokensOf("<![CDATA[a<b]]>c", true)).toEqual([text("a<bc")]);
  });

  it.each([
    "<",
    "<a ",
    "<a b='",
    "</a ",
    "<!--",
    "<!-- -",
    "--!",
    "<script>",
    "<script><!--",
    "<title>",
    "&",
    "<![CDATA[",
  ])("reads 2 MB of %j in linear time", (part) => {
    const html = part.repeat(Math.ceil(2_000_000 / part.length));

    expect(tokensOf(html).length).toBeGreaterThanOrEqual(0);
  });
});

interface Html5libCase {
  readonly name: string;
  readonly input: string;
  readonly output: readonly (readonly [string, ...unknown[]])[];
  readonly initialStates?: readonly string[];
  readonly lastStartTag?: string;
  readonly doubleEscaped?: boolean;
}

const suite = sharedData("suites/html/html5lib-tokenizer.json");

describe.skipIf(suite === null)("html5lib's tokenizer tests", () => {
  /** Returns markup that brings the scanner into a state, or null when no page can. */
  function opening(state: string, last: string | undefined): string | null {
    const names: Readonly<Record<string, readonly string[]>> = {
      "PLAINTEXT state": ["plaintext"],
      "RCDATA state": ["title", "textarea"],
      "RAWTEXT state": ["style", "xmp", "iframe", "noembed", "noframes"],
      "Script data state": ["script"],
    };
    if (state === "Data state") return "";
    if (state === "CDATA section state") return "<![CDATA[";
    const name = last ?? names[state]?.[0] ?? "";
    return names[state]?.includes(name) ? `<${name}>` : null;
  }

  /** We keep NUL and lower only ASCII; line ends are normalised before, comments and doctypes left out. */
  const plain = (value: string) => value.replaceAll("\0", "\ufffd");
  const read = (tokens: readonly Token[]) => plain(JSON.stringify(tokens).replaceAll("\\u0000", "\ufffd"));

  it("give the expected tags, attributes and text in every state that a page can have", () => {
    const cases = JSON.parse(readFileSync(suite!, "utf8")) as Html5libCase[];
    const wrong: string[] = [];
    let run = 0;
    for (const one of cases) {
      const unescaped = (value: string) =>
        one.doubleEscaped
          ? value.replace(/\\u([0-9A-Fa-f]{4})/g, (_all, hex: string) =>
              String.fromCharCode(Number.parseInt(hex, 16)),
            )
          : value;
      for (const state of one.initialStates ?? ["Data state"]) {
        const before = opening(state, one.lastStartTag);
        if (before === null) continue;
        run++;
        const html = before + unescaped(one.input).replace(/\r\n?/g, "\n");
        const found = tokensOf(html, state === "CDATA section state").slice(
          before.startsWith("<!") || before === "" ? 0 : 1,
        );
        const wanted = one.output.flatMap(([type, name, attributes]): Token[] => {
          if (type === "Character") return [text(unescaped(name as string))];
          if (type === "EndTag") return [end(unescaped(name as string))];
          return type === "StartTag" ? [start(name as string, attributes as Record<string, string>)] : [];
        });
        if (read(found) !== read(joined(wanted))) wrong.push(`${one.name} in ${state}: ${read(found)}`);
      }
    }

    expect(wrong).toEqual([]);
    expect(run).toBeGreaterThan(6900);
  });
});

const manifest = sharedData("suites/pages/manifest.json");

describe.skipIf(manifest === null)("real pages", () => {
  it("have the same links for htmlparser2, the second opinion", async () => {
    const pages = JSON.parse(readFileSync(manifest!, "utf8")) as {
      name: string;
      file: string;
      encoding: string;
    }[];
    const different: string[] = [];
    for (const page of pages) {
      const bytes = readFileSync(sharedData(`suites/pages/${page.file}`)!);
      const html = new TextDecoder(page.encoding).decode(bytes);
      const { links } = await readOf(html);
      const [ours, others] = [links.map(({ href }) => href), theirs(html)];
      if (ours.join("\n") !== others.join("\n")) different.push(page.name);
    }

    expect(different).toEqual([]);
  });

  /** Without duplicates and fragments. */
  function theirs(html: string): string[] {
    const hrefs = new Set<string>();
    const parser = new Parser(
      {
        onopentag(name, { href }) {
          if ((name === "a" || name === "area") && href !== undefined) hrefs.add(href.replace(/#.*$/s, ""));
        },
      },
      { decodeEntities: true },
    );
    parser.end(html);
    return [...hrefs];
  }
});

// Compares links of generated pages with an independent parser (node-html-parser).

const world = generateWorld({ seed: 21, sites: 12, crawlers: 2 });

describe("extraction", () => {
  it("finds the same links as another parser on every page of generated sites", async () => {
    let links = 0;
    for (const site of world.sites) {
      const plan = planSite(world, site);
      for (const page of plan.pages) {
        const url = `http://${site.host}${page.path}`;
        const html = pageHtml(plan, page, siteFurniture(1));

        const extracted = await extractPage(bodyOf(html, { url, wantsSecondOpinion: true }));

        expect(extracted.secondOpinion, url).toEqual({ onlyOurs: [], onlyTheirs: [] });
        links += extracted.page.links.length;
      }
    }
    expect(links).toBeGreaterThan(200);
  });
});
